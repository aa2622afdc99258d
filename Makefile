# Everything a person or a machine does with this repository. `make` alone lists it.
#
# Assumed: Rust, Go and make. What else is needed (a linker, util-linux, Python for the tests) is installed where that is possible,
# and named where it is not.

# Most tests wait most of the time, so two of them share a core; each may have a control plane of its own, which
# takes half a gigabyte.
export RUST_TEST_THREADS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 4 ? 2 * n : 8)))
# The control plane that tests, demo, chaos and bench run against, by its minor version: a folder of dev/controlplane
export K8S ?= 1.36
# What the API servers of tests store in: etcd, or kine as k3s does
K8S_STORE ?= etcd
# The tests that make test runs on kine, too; make test K8S_STORE=kine runs all that do not need etcd itself
KINE_TESTS ?= \
  silence::an_ordinary_return_costs_one_record_write_and_one_node_patch \
  history::a_node_changed_deleted_and_reborn_while_the_keeper_is_down_gets_its_last_state \
  sharing::a_dead_replica_is_covered_without_waiting_for_its_lease \
  sharing::each_of_three_does_its_share_and_nothing_is_done_twice \
  outage::etcd_is_turned_back_under_two_replicas_and_both_work_on
# Arguments of the demo, e.g. make demo DEMO_ARGS="--nodes 100 --for 20s"
DEMO_ARGS ?=
# What of the benchmark, e.g. make bench BENCH_ARGS="storm --nodes 1000"; everyone side by side by default
BENCH_ARGS ?= compare --nodes $(NODES) --rounds $(ROUNDS)
ROUNDS ?= 3
# Arguments of e2e, e.g. make e2e E2E_ARGS="--only returns,storm --keep"
E2E_ARGS ?=
# With KUBECONFIG=…: how the kubelet of a node is restarted, {} being its name
RESTART_KUBELET ?=
# Which guards to take out; all of them if none are named
GUARDS ?=
# The toolchain that fuzzing needs, and how long each target takes
NIGHTLY ?= nightly
SECONDS ?= 60
# The worker to restart; the first if none is named
WORKER ?=
# Choices of chaos
SEED ?= 1
REPLICAS ?= 3
API_SERVERS ?= 3
ETCD_MEMBERS ?= 3
chaos: NODES ?= 30
chaos: MINUTES ?= 5
soak: NODES ?= 100000
soak: MINUTES ?= 30
bench: NODES ?= 5000

# One that is named on the command line alone: what the environment names may be a cluster that people depend on.
ifeq ($(origin KUBECONFIG),command line)
e2e_cluster = --kubeconfig '$(KUBECONFIG)' $(if $(RESTART_KUBELET),--restart-kubelet '$(RESTART_KUBELET)')
else
e2e: cluster
endif

.DEFAULT_GOAL := help
.PHONY: help demo e2e up restart-worker grafana down chaos bench peers peers-check test model guards fuzz lint fmt deny controlplane etcdutl kine s3 helm cluster moto prometheus grafana-sdk browser clocks screenshots image sbom deb prerequisites clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: prerequisites controlplane s3 ## Watch the keeper at work on a real API server (DEMO_ARGS="--nodes 100 --for 20s")
	cargo build --locked --bins -p perennial -p perennial-testkit
	@cargo run --locked --quiet -p perennial-testkit --bin demo -- $(DEMO_ARGS)

up: prerequisites ## Bring up a real cluster and leave it running: by kind, or without Docker from Go modules (CLUSTER=kind|modules)
	@dev/local up

restart-worker: ## Restart the kubelet of a worker of that cluster, which then registers again (WORKER=worker-1)
	@dev/local restart-worker $(WORKER)

grafana: controlplane ## Bring a small Prometheus and Grafana with the dashboard to that cluster, and open it at localhost:3000
	@dev/local grafana

down: ## Take that cluster down, with all that it left
	@dev/local down

chaos: prerequisites controlplane clocks ## Break everything around the keeper, and judge it (SEED=1 MINUTES=5 REPLICAS=3 NODES=30 API_SERVERS=3 ETCD_MEMBERS=3)
	cargo build --locked --bins -p perennial -p perennial-testkit
	@cargo run --locked --quiet -p perennial-testkit --bin chaos -- --seed $(SEED) --minutes $(MINUTES) --replicas $(REPLICAS) --nodes $(NODES) \
	  --api-servers $(API_SERVERS) --etcd-members $(ETCD_MEMBERS)

# One by one: together they would be built with what any of them needs, and Perennial not as it is shipped.
bench: prerequisites controlplane s3 peers ## Measure it beside its peers and the API server's limit (NODES=5000 ROUNDS=3, BENCH_ARGS="storm --nodes 1000")
	cargo build --locked --release -p perennial
	cargo build --locked --profile fast -p perennial-bench
	@cp target/release/perennial target/fast/
	@target/fast/bench $(BENCH_ARGS)

soak: prerequisites controlplane ## Churn for half an hour at 100,000 nodes with three replicas (NODES=100000 MINUTES=30)
	cargo build --locked --release -p perennial
	cargo build --locked --profile fast -p perennial-bench
	@cp target/release/perennial target/fast/
	@target/fast/bench soak --nodes $(NODES) --minutes $(MINUTES)

peers: prerequisites ## Build the peers that it is measured beside: in Go, Python and Rust (bench/peers)
	@dev/prerequisites python
	@bench/peers/build
	cargo build --locked --profile fast --package peer-kube-rs

peers-check: peers controlplane ## See that the peers do the same work, on a real API server
	go -C bench/peers/controller-runtime vet ./...
	cargo build --locked --package peers-contract
	@peers=$$(bench/peers/build --print-dir) && \
	  target/debug/peers-contract "$$peers/controller-runtime" "$$peers/kopf" target/fast/peer-kube-rs

test: lint controlplane etcdutl kine s3 helm moto prometheus grafana-sdk browser clocks ## Check everything: lint, then every test against a real API server and a real S3 server (K8S=1.34 K8S_STORE=kine)
ifeq ($(K8S_STORE),kine)
	dev/controlplane/kine/suites
else
	cargo test --workspace --exclude peer-kube-rs --exclude peers-contract --locked
	dev/controlplane/kine/suites $(KINE_TESTS)
endif

e2e: prerequisites controlplane s3 helm image deb ## Install it on a real cluster, and do with it what users do (E2E_ARGS="--only fleet --keep", KUBECONFIG=)
	@dev/prerequisites e2e
	cargo build --locked --package perennial-testkit --bin e2e
	@cargo run --locked --quiet --package perennial-testkit --bin e2e -- $(e2e_cluster) $(E2E_ARGS)

model: ## Explore the protocol exhaustively in larger bounds than the tests do (some minutes, some gigabytes)
	MODEL_DEPTH=full cargo test --locked --release -p perennial-core --test model -- --nocapture --test-threads 1

guards: controlplane etcdutl ## Take out one guard at a time, and see that a test notices (about half an hour; GUARDS="03 07" for some)
	@dev/guards/run $(GUARDS)

# With seeds of our own, and with what earlier runs found in target/fuzz; what it finds wrong is in fuzz/artifacts.
fuzz: prerequisites ## Feed the parsers anything at all, each for some seconds (SECONDS=60; needs a nightly toolchain)
	@cargo +$(NIGHTLY) --version >/dev/null 2>&1 || { echo "a nightly toolchain is missing: rustup toolchain install nightly, or NIGHTLY=nightly-2026-…" >&2; exit 1; }
	@set -e; tool=$$(dev/cargo-tool cargo-fuzz 0.13.2); export PATH="$$tool:$$PATH"; \
	for target in $$(cargo +$(NIGHTLY) fuzz list); do \
	  mkdir -p target/fuzz/$$target; \
	  echo "fuzz: $$target, $(SECONDS) s"; \
	  cargo +$(NIGHTLY) fuzz run --target-dir target/fuzz/build $$target target/fuzz/$$target fuzz/corpus/$$target -- \
	    -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 -verbosity=0; \
	done

# Fuzz targets are only checked, on the usual toolchain: without libFuzzer, which would have to be built from C++ and is not linked.
lint: prerequisites deny ## Check format, clippy and documentation; warnings are errors
	@cargo fmt --version >/dev/null 2>&1 || { echo "rustfmt is missing: rustup component add rustfmt" >&2; exit 1; }
	@cargo clippy --version >/dev/null 2>&1 || { echo "clippy is missing: rustup component add clippy" >&2; exit 1; }
	cargo fmt --all --check
	@unformatted=$$(gofmt -l bench) && { [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted" >&2; exit 1; }; }
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	CUSTOM_LIBFUZZER_PATH=/dev/null cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz/check
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --document-private-items --locked

deny: ## Check licences, sources and bans of dependencies; advisories where their database can be reached
	@set -e; tool=$$(dev/cargo-tool cargo-deny 0.20.2); export PATH="$$tool:$$PATH"; \
	cargo deny --log-level error check bans licenses sources; \
	if cargo deny --log-level off fetch db >/dev/null 2>&1; then cargo deny --log-level error check advisories; \
	else echo "deny: the database of advisories cannot be reached, so they are not checked"; fi

fmt: ## Format the code
	cargo fmt --all
	gofmt -w bench

controlplane: prerequisites ## Build etcd, kube-apiserver and kubectl, once for all checkouts (some minutes; K8S=1.34)
	@dev/controlplane/build

kine: prerequisites ## Build kine, which k3s stores in, once for all checkouts (some minutes)
	@dev/controlplane/kine/build

etcdutl: prerequisites ## Build etcdutl, which restores etcd's snapshots, once for all checkouts
	@dev/etcdutl/build

s3: prerequisites ## Build versitygw, an S3 server, once for all checkouts (some minutes)
	@dev/s3/build

helm: prerequisites ## Build Helm, once for all checkouts (some minutes)
	@dev/helm/build

image: prerequisites ## Build the container image without Docker, as an OCI archive, and what is in it (IMAGE=name:tag)
	@dev/prerequisites image
	@dev/image/build
	@dev/image/sbom
	@dev/image/provenance

sbom: prerequisites ## List every crate that is linked into the binary, in CycloneDX
	@dev/image/sbom

deb: prerequisites ## Build the .deb for hosts: binary, systemd unit, completions, kubectl plugin
	@dev/host/build

cluster: controlplane helm ## Build what a real cluster needs: kubelet, containerd, images and so on, once for all checkouts
	@dev/prerequisites cluster
	@dev/cluster/build
	@dev/cluster/images

moto: # Installs moto, an S3 server that honours ACLs, for the one test that needs it
	@dev/prerequisites python
	@dev/s3/moto

prometheus: # Installs Prometheus and promtool, which judge the alerts and the dashboard
	@dev/prerequisites prometheus

clocks: # Installs libfaketime, which gives the replicas of chaos wrong clocks
	@dev/prerequisites clocks

grafana-sdk: # Installs Grafana's own types of dashboards
	@dev/prerequisites python
	@dev/grafana/check

browser: # Installs what looks at the status page: a browser, and what drives it
	@dev/prerequisites page
	@dev/page/install

screenshots: controlplane browser ## Make the pictures of the status page in docs/ anew, from a real run
	@dev/prerequisites screenshots
	@dev/page/screenshots

prerequisites: # Installs what is missing, or says what that is
	@dev/prerequisites

clean: ## Remove what cargo built; what was built from Go modules stays in the cache
	cargo clean
