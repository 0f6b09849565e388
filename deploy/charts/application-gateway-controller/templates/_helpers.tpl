{{- define "gateway.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* Mistakes that the schema cannot tell. */ -}}
{{- define "gateway.check" -}}
{{- if and .Values.gateway.id .Values.gateway.name }}
{{- fail "gateway.id and gateway.name exclude each other: want one" }}
{{- end }}
{{- if not (or .Values.gateway.id .Values.gateway.name .Values.extraEnv) }}
{{- fail "gateway.id, gateway.name and extraEnv are all empty: one of them must name the application gateway" }}
{{- end }}
{{- if not (or .Values.cloudConfig .Values.cloudConfigSecretName .Values.gateway.id .Values.extraEnv) }}
{{- fail "cloudConfig and cloudConfigSecretName are empty: gateway.id must name the application gateway with its subscription" }}
{{- end }}
{{- end -}}
