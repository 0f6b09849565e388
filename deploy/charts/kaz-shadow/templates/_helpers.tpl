{{- define "shadow.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* Mistakes that the schema cannot tell. */ -}}
{{- define "shadow.check" -}}
{{- if not (or .Values.cloudConfig .Values.cloudConfigSecretName) }}
{{- fail "cloudConfig and cloudConfigSecretName are both empty: one of them must have the cloud configuration" }}
{{- end }}
{{- if and .Values.names.owner (not .Values.names.zoneResourceGroups) }}
{{- fail "names.owner is set and names.zoneResourceGroups is empty: it must have the resource groups of the zones" }}
{{- end }}
{{- end -}}
