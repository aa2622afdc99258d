// The keeper as a Go controller, with controller-runtime: what most people would reach for.
//
// Why it is fair: it does what controller-runtime's own documentation advises for controllers of many objects, and nothing
// that would hold it back is left at a default. Tuned: Nodes are watched by their metadata alone, and stripped of what is not
// needed before they are cached; records are cached by namespace and label; a heartbeat ends in the predicate; reads of the cache
// make no copy; 64 reconciles at once, which no limit of the client slows down; a retry waits milliseconds at first.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	concurrency           = 64
	firstRetry, lastRetry = 5 * time.Millisecond, 30 * time.Second
)

var ours = map[string]string{"app.kubernetes.io/managed-by": "peer"}

func main() {
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(os.Getenv("NAMESPACE")); err != nil {
		logger.Error(err, "ended")
		os.Exit(1)
	}
}

func run(namespace string) error {
	if namespace == "" {
		return fmt.Errorf("NAMESPACE is not set")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	noCopy := true
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  clientgoscheme.Scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultUnsafeDisableDeepCopy: &noCopy,
			ByObject: map[client.Object]cache.ByObject{
				bareNode(): {Transform: strip},
				&corev1.ConfigMap{}: {
					Namespaces: map[string]cache.Config{namespace: {}},
					Label:      labels.SelectorFromSet(ours),
					Transform:  strip,
				},
			},
		},
	})
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(manager).
		For(&corev1.Node{}, builder.OnlyMetadata, builder.WithPredicates(becomesAnother)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			// The usual one would also allow no more than ten retries a second over all nodes.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
		}).
		Complete(&keeper{Client: manager.GetClient(), namespace: namespace})
	if err != nil {
		return err
	}
	// Otherwise the first reconcile would begin to watch the records, and all the others wait for it.
	ctx := ctrl.SetupSignalHandler()
	if _, err := manager.GetCache().GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// Passes what is new, and what has other labels. A relist may show the next incarnation as a change of the last.
var becomesAnother = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// Removes from an object in the cache what is never looked at.
func strip(object any) (any, error) {
	if object, ok := object.(client.Object); ok {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	return object, nil
}

func bareNode() *metav1.PartialObjectMetadata {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return node
}

type keeper struct {
	client.Client
	namespace string
}

// Reconcile compares a node with its record. What it reads is the cache's own: it is replaced, never changed.
func (k *keeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := bareNode()
	if err := k.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	record := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: k.namespace, Name: "node-" + node.Name}
	if err := k.Get(ctx, key, record); apierrors.IsNotFound(err) {
		return result(k.save(ctx, key, "", nil, node))
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if record.Data["uid"] != string(node.UID) {
		given, err := k.give(ctx, record, node)
		if err != nil {
			return result(err)
		}
		node = given
	}
	return result(k.save(ctx, key, record.ResourceVersion, record.Data, node))
}

// give adds the recorded labels that the node lacks, unless the node has changed since it was seen.
func (k *keeper) give(ctx context.Context, record *corev1.ConfigMap, node *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	var recorded map[string]string
	if err := json.Unmarshal([]byte(record.Data["labels"]), &recorded); err != nil {
		return nil, fmt.Errorf("record of %s: %w", node.Name, err)
	}
	whole := maps.Clone(recorded)
	maps.Copy(whole, node.Labels)
	if len(whole) == len(node.Labels) {
		return node, nil
	}
	given := node.DeepCopy()
	given.Labels = whole
	return given, k.Patch(ctx, given, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
}

// save writes the record of this node where it says something else; the version is that of the record that was seen, if any.
func (k *keeper) save(ctx context.Context, key types.NamespacedName, version string, data map[string]string, node *metav1.PartialObjectMetadata) error {
	kept := make(map[string]string, len(node.Labels))
	for label, value := range node.Labels {
		if isKept(label) {
			kept[label] = value
		}
	}
	if version == "" && len(kept) == 0 {
		return nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	fresh := map[string]string{"uid": string(node.UID), "labels": string(text)}
	if maps.Equal(data, fresh) {
		return nil
	}
	record := &corev1.ConfigMap{Data: fresh}
	record.Name, record.Namespace, record.Labels, record.ResourceVersion = key.Name, key.Namespace, ours, version
	if version == "" {
		return k.Create(ctx, record)
	}
	return k.Update(ctx, record)
}

// result has another look soon, and without a word, where the cache is a moment behind; all other errors are backed off from.
func result(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: firstRetry}, nil
	}
	return ctrl.Result{}, err
}
