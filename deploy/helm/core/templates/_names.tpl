{{- /* Names, labels and arguments that several templates use. */ -}}

{{- define "core.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "core.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "core.labels" -}}
{{ include "core.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "core.scheme" -}}
{{ if .Values.tls.secret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- define "core.arguments" -}}
{{- if .Values.models.urls }}
{{- range .Values.models.urls }}
- --model-repository={{ . }}
{{- end }}
{{- else }}
- --model-repository=/models
{{- end }}
- --model-control-mode={{ .Values.models.controlMode }}
{{- if eq .Values.models.controlMode "poll" }}
- --repository-poll-secs={{ .Values.models.pollSecs }}
{{- end }}
- --exit-timeout-secs={{ .Values.exitTimeoutSecs }}
{{- if .Values.readiness.drain }}
- --drain-file=/tmp/drain
{{- end }}
{{- with .Values.readiness.overloadWaitSecs }}
- --overload-wait-secs={{ . }}
{{- end }}
{{- if .Values.tls.secret }}
{{- range list "http" "grpc" }}
- --{{ . }}-use-ssl=true
- --{{ . }}-server-cert=/tls/tls.crt
- --{{ . }}-server-key=/tls/tls.key
{{- end }}
- --metrics-use-ssl=true
{{- end }}
{{- if .Values.tokens.secret }}
- --auth-tokens=/tokens/tokens.txt
- --auth-open={{ join "," .Values.tokens.open | default "none" }}
{{- end }}
{{- range .Values.options }}
- {{ . | quote }}
{{- end }}
{{- end }}
