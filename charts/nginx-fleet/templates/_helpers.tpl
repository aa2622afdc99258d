{{- define "fleet.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "fleet.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fleet.labels" -}}
{{ include "fleet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "fleet.secret" -}}
{{- default (printf "%s-bucket" (include "fleet.fullname" .)) .Values.publish.secret.name -}}
{{- end }}

{{- define "fleet.perennial" -}}
{{- with .Values.perennial.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{/* What is listed, for the sidecar, the CronJob and the test alike. */}}
{{- define "fleet.listed" -}}
- --service={{ include "fleet.fullname" . }}
- --endpoints={{ .Values.page.endpoints }}
- --min-endpoints={{ int .Values.page.minEndpoints }}
- --pace={{ .Values.page.pace }}
- --log-format=json
{{- if .Values.page.template }}
- --template=/etc/fleet/page.template
{{- end }}
{{- end }}

{{/* The account's token, for the one container that needs it. */}}
{{- define "fleet.token" -}}
- name: token
  projected:
    sources:
      - serviceAccountToken: { path: token, expirationSeconds: 3607 }
      - configMap:
          name: kube-root-ca.crt
          items: [{ key: ca.crt, path: ca.crt }]
      - downwardAPI:
          items: [{ path: namespace, fieldRef: { fieldPath: metadata.namespace } }]
{{- end }}

{{- define "fleet.tokenMount" -}}
- name: token
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end }}
