{{- /* The image of a component: what values say, and the chart's appVersion where they name no tag. */ -}}
{{- define "kaz.image" -}}
{{- $name := printf "%s/%s" .values.imageRepository .values.imageName -}}
{{- if .values.imageDigest -}}
{{- printf "%s@%s" $name .values.imageDigest -}}
{{- else -}}
{{- printf "%s:%s" $name (.values.imageTag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- /* Flags of which the value is given, in the order of their names. */ -}}
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

{{- /* What a container may not do, whoever it is. */ -}}
{{- define "kaz.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "kaz.nobody" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}
