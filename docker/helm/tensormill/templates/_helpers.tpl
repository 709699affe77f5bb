{{- define "mill.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "mill.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* (dict "root" . "part" "server"): what selectors look for. */}}
{{- define "mill.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "mill.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* Whether processes share a database and a bucket; both or none. */}}
{{- define "mill.shared" -}}
{{- if and .Values.catalog.url .Values.blobs.url }}yes{{ else if or .Values.catalog.url .Values.blobs.url }}{{ fail "catalog.url and blobs.url go together: replicas need both, a server alone none" }}{{ end }}
{{- end }}

{{- /* Settings as variables: TENSORMILL_ and the name in upper case, dots as underscores. */}}
{{- define "mill.settings" -}}
{{- range $name, $value := . }}
- {name: TENSORMILL_{{ $name | upper | replace "." "_" }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{- define "mill.podSecurity" -}}
runAsNonRoot: true
runAsUser: 5000
runAsGroup: 5000
fsGroup: 5000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "mill.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* (dict "name" volume "secret" its secret): of secrets folders are mounted, since a mounted file stays the old one. */}}
{{- define "mill.secretVolume" -}}
- name: {{ .name }}
  secret: {secretName: {{ .secret | quote }}, defaultMode: 0440}
{{- end }}
