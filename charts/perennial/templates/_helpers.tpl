{{- define "perennial.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 53 | trimSuffix "-" -}}
{{- end }}

{{/* The name of everything: the release's, with the chart's where it is not in it already. */}}
{{- define "perennial.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- else if contains (include "perennial.name" .) .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "perennial.name" .) | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The name of everything that belongs to the webhook. */}}
{{- define "perennial.webhook" -}}
{{- printf "%s-webhook" (include "perennial.fullname" .) -}}
{{- end }}

{{/* The name of everything that belongs to metrics by HTTPS. */}}
{{- define "perennial.metrics" -}}
{{- printf "%s-metrics" (include "perennial.fullname" .) -}}
{{- end }}

{{/* What pods are selected by. */}}
{{- define "perennial.selector" -}}
app.kubernetes.io/name: {{ include "perennial.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "perennial.labels" -}}
{{ include "perennial.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "perennial.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end }}

{{/*
The Deployments, as a list: what each is called and what it does.
The lister has no dry run, so it waits until that is over.
*/}}
{{- define "perennial.components" -}}
{{- $name := include "perennial.fullname" . -}}
{{- $keeper := .Values.keeper -}}
{{- $lister := and .Values.lister.enabled (not .Values.dryRun) -}}
{{- $all := list -}}
{{- if not (or $keeper.enabled .Values.lister.enabled) -}}
{{- fail "nothing to do: enable keeper or lister" -}}
{{- else if and .Values.dryRun (not $keeper.enabled) -}}
{{- fail "nothing to do: dryRun is the keeper's, and it is not enabled" -}}
{{- end -}}
{{- if not .Values.split -}}
{{- $account := $name -}}
{{- if .Values.serviceAccount.name -}}{{- $account = .Values.serviceAccount.name -}}{{- end -}}
{{- $all = append $all (dict "name" $name "account" $account "part" "perennial" "keeper" $keeper.enabled "capture" $keeper.enabled "restore" $keeper.enabled "lister" $lister "replicas" .Values.replicas "resources" .Values.resources) -}}
{{- else -}}
{{- $parts := list -}}
{{- if and $keeper.enabled $keeper.split -}}
{{- $parts = list (dict "part" "capture" "capture" true "restore" false) (dict "part" "restore" "capture" false "restore" true) -}}
{{- else if $keeper.enabled -}}
{{- $parts = list (dict "part" "keeper" "capture" true "restore" true) -}}
{{- end -}}
{{- range $parts -}}
{{- $full := printf "%s-%s" $name .part -}}
{{- $all = append $all (merge (dict "name" $full "account" $full "keeper" true "lister" false "replicas" (default $.Values.replicas $keeper.replicas) "resources" (default $.Values.resources $keeper.resources)) .) -}}
{{- end -}}
{{- if $lister -}}
{{- $full := printf "%s-lister" $name -}}
{{- $all = append $all (dict "name" $full "account" $full "part" "lister" "keeper" false "capture" false "restore" false "lister" true "replicas" (default .Values.replicas .Values.lister.replicas) "resources" (default .Values.resources .Values.lister.resources)) -}}
{{- end -}}
{{- end -}}
{{ toYaml $all }}
{{- end }}

{{/* The labels of one Deployment's pods. */}}
{{- define "perennial.part" -}}
{{ include "perennial.selector" .root }}
app.kubernetes.io/component: {{ .part.part }}
{{- end }}

{{/* The settings of one Deployment, as `perennial run` and `perennial check` take them. */}}
{{- define "perennial.settings" -}}
{{- $values := .root.Values -}}
{{- $roles := list -}}
{{- if .part.keeper -}}{{- $roles = append $roles "keeper" -}}{{- end -}}
{{- if .part.lister -}}{{- $roles = append $roles "lister" -}}{{- end -}}
- --roles={{ join "," $roles }}
{{- if .part.keeper }}
- --policy=/etc/perennial/policy.yaml
- --resync={{ $values.keeper.resync }}
- --concurrency={{ int $values.keeper.concurrency }}
{{- with $values.keeper.installation }}
- --installation={{ . }}
{{- end }}
{{- if not .part.capture }}
- --no-capture
{{- end }}
{{- if not .part.restore }}
- --no-restore
{{- end }}
{{- if $values.records.keySecret }}
- --record-key=/etc/perennial-key/{{ $values.records.key }}
{{- if $values.records.acceptUnsealed }}
- --accept-unsealed
{{- end }}
{{- end }}
{{- if $values.keeper.condition }}
{{- if $values.keeper.split }}
{{- fail "keeper.condition needs one Deployment that records and gives back: set keeper.split=false" }}
{{- end }}
- --condition
{{- end }}
{{- if $values.dryRun }}
- --dry-run
{{- else if and $values.webhook.enabled .part.restore }}
- --webhook-address=:8443
- --webhook-name={{ include "perennial.webhook" .root }}
- --webhook-certificates={{ $values.webhook.certificates }}
{{- with $values.webhook.gate }}
- --gate={{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .part.lister $values.lister.namespace }}
- --listing-namespace={{ $values.lister.namespace }}
{{- end }}
{{- if $values.metrics.secure }}
- --metrics-address=:8444
- --metrics-name={{ include "perennial.metrics" .root }}
- --metrics-certificates={{ $values.metrics.certificates }}
{{- end }}
- --takeover={{ $values.takeover }}
- --lease-duration={{ $values.leaseDuration }}
- --log-level={{ $values.log.level }}
- --log-format={{ $values.log.format }}
{{- if not $values.statusPage.enabled }}
- --page=off
{{- else }}
{{- if $values.statusPage.values }}
- --page-values
{{- end }}
{{- with $values.statusPage.hosts }}
- --page-hosts={{ join "," . }}
{{- end }}
{{- end }}
{{- with $values.traces.endpoint }}
- --otlp-endpoint={{ . }}
- --otlp-sample={{ $values.traces.sample }}
{{- end }}
{{- end }}

{{- define "perennial.priorityClass" -}}
{{- if .Values.priorityClass.name -}}
{{- .Values.priorityClass.name -}}
{{- else if .Values.priorityClass.create -}}
{{- include "perennial.fullname" . -}}
{{- end -}}
{{- end }}

{{/*
One alert of files/alerts.yaml as the values tune it; nothing, where it is switched off. Every expression ends in its threshold.
Where nothing is ever given back, nodes that return are never restored nor followed, and that is no news to anybody.
*/}}
{{- define "perennial.alert" -}}
{{- $rule := .rule -}}
{{- $values := .root.Values.prometheusRule -}}
{{- $tuned := index $values.alerts $rule.alert | default dict -}}
{{- if not (hasKey $tuned "threshold") -}}
{{- if eq $rule.alert "PerennialReplicasMissing" -}}
{{- $replicas := 0 -}}
{{- range include "perennial.components" .root | fromYamlArray -}}{{- $replicas = add $replicas (int .replicas) -}}{{- end -}}
{{- $tuned = merge (dict "threshold" $replicas) $tuned -}}
{{- end -}}
{{- end -}}
{{- $wanted := true -}}
{{- if has "--no-restore" .root.Values.extraArgs -}}
{{- $wanted = not (has $rule.alert (list "PerennialNodesUnrestored" "PerennialNotCurrent")) -}}
{{- end -}}
{{- if dig "enabled" $wanted $tuned -}}
{{- if hasKey $tuned "threshold" -}}
{{- $_ := set $rule "expr" (regexReplaceAll "[^ ]+$" $rule.expr (toString $tuned.threshold)) -}}
{{- end -}}
{{- with $tuned.for -}}{{- $_ := set $rule "for" . -}}{{- end -}}
{{- $_ := set $rule "labels" (merge (dict "severity" (default $rule.labels.severity $tuned.severity)) $values.alertLabels) -}}
{{- with $values.runbookUrl -}}
{{- $_ := set $rule.annotations "runbook_url" (replace "docs/alerts.md" . $rule.annotations.runbook_url) -}}
{{- end -}}
{{ toYaml $rule }}
{{- end -}}
{{- end }}

{{/* A list of globs as one regular expression in CEL that keys are matched with: they have no other characters than globs and keys may have. */}}
{{- define "perennial.matches" -}}
{{- $any := list -}}
{{- range . -}}
{{- $any = append $any (. | replace "." "\\." | replace "*" ".*" | replace "?" "." | replace "[!" "[^" | replace "{" "(?:" | replace "}" ")" | replace "," "|") -}}
{{- end -}}
key.matches(r'^(?:{{ join "|" $any }})$')
{{- end }}

{{/* What one rule keeps of one kind, in CEL: as docs/policy.md says, and `Filter::matches` in the keeper. */}}
{{- define "perennial.filter" -}}
{{- $everything := false -}}
{{- $named := list -}}
{{- range kindIs "slice" .filter.include | ternary .filter.include .include -}}
{{- if regexMatch "^[*]+$" . -}}{{- $everything = true -}}{{- else -}}{{- $named = append $named . -}}{{- end -}}
{{- end -}}
{{- $wanted := list -}}
{{- if $named -}}{{- $wanted = append $wanted (include "perennial.matches" $named) -}}{{- end -}}
{{- if and $everything .usual (ne (toString .filter.excludeDefaults) "false") -}}
{{- $wanted = append $wanted (printf "!%s" (include "perennial.matches" .usual)) -}}
{{- else if $everything -}}
{{- $wanted = append $wanted "true" -}}
{{- end -}}
{{- if $wanted -}}
(({{ join " || " $wanted }})
{{- with .filter.exclude }} && !{{ include "perennial.matches" . }}{{ end -}}
)
{{- end -}}
{{- end }}

{{/*
What the policy keeps, whichever rule a node falls under, for the fence around Nodes: expressions of CEL about `key`, empty where nothing of a
kind is kept, and whether cordon is.
*/}}
{{- define "perennial.kept" -}}
{{- $builtin := .Files.Get "files/kept.yaml" | fromYaml -}}
{{- $rules := .Values.policy.rules | default (list dict) -}}
{{- $cordon := false -}}
{{- range $rules -}}{{- if .cordon -}}{{- $cordon = true -}}{{- end -}}{{- end -}}
{{- range $kind := list "labels" "annotations" "taints" -}}
{{- $include := ternary (list "*") list (eq $kind "labels") -}}
{{- $globs := index $builtin $kind -}}
{{- $any := list -}}
{{- range $rules -}}
{{- $one := include "perennial.filter" (dict "filter" (index . $kind | default dict) "include" $include "usual" $globs.usual) -}}
{{- if $one -}}{{- $any = append $any $one -}}{{- end -}}
{{- end -}}
{{- $expression := ternary "" "false" (eq $kind "taints") -}}
{{- if $any -}}
{{- $expression = printf "!%s && (%s)" (include "perennial.matches" $globs.never) (join " || " $any) -}}
{{- end }}
{{ $kind }}: {{ toJson $expression }}
{{- end }}
cordon: {{ $cordon }}
{{- end }}
