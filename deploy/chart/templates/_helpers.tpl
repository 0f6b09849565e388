{{- /* The image of a component, with the chart's appVersion as default tag. */ -}}
{{- define "kaz.image" -}}
{{- $name := printf "%s/%s" .values.imageRepository .values.imageName -}}
{{- if .values.imageDigest -}}
{{- printf "%s@%s" $name .values.imageDigest -}}
{{- else -}}
{{- printf "%s:%s" $name (.values.imageTag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- /* Flags with a value, sorted by name. */ -}}
{{- define "kaz.flags" -}}
{{- range $flag, $value := . }}
{{- if ne (toString $value) "" }}
- --{{ $flag }}={{ $value }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "kaz.labels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- /* Restrictions of every container. */ -}}
{{- define "kaz.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "kaz.nonroot" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* Annotations by which a Prometheus finds the metrics of a pod at a port, none for 0. */ -}}
{{- define "kaz.scraped" -}}
{{- if . }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ . | quote }}
{{- end }}
{{- end -}}
