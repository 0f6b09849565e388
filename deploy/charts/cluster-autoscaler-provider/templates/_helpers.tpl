{{- define "autoscaler.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* An image: a digest goes before a tag, and an empty tag is the default. */ -}}
{{- define "autoscaler.image" -}}
{{- if .image.digest -}}
image: {{ printf "%s@%s" .image.repository .image.digest | quote }}
{{- else -}}
image: {{ printf "%s:%s" .image.repository (.image.tag | default .tag) | quote }}
{{- end }}
imagePullPolicy: {{ .image.pullPolicy }}
{{- end -}}

{{- define "autoscaler.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "autoscaler.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
periodSeconds: 10
timeoutSeconds: 5
{{- end -}}

{{- /* Mistakes that the schema cannot tell. */ -}}
{{- define "autoscaler.check" -}}
{{- if not (concat .Values.nodeGroups.named .Values.nodeGroups.discovery) }}
{{- fail "nodeGroups.named and nodeGroups.discovery are both empty: one of them must say which scale sets are node groups" }}
{{- end }}
{{- if not (or .Values.cloudConfig .Values.cloudConfigSecretName .Values.provider.extraEnv) }}
{{- fail "cloudConfig, cloudConfigSecretName and provider.extraEnv are all empty: one of them must have the cloud configuration" }}
{{- end }}
{{- if not .Values.clusterAutoscaler.enabled }}
{{- if not .Values.tls.secretName }}
{{- fail "tls.secretName is empty: without clusterAutoscaler.enabled the provider serves other pods, which need certificates" }}
{{- end }}
{{- if gt (int .Values.replicas) 1 }}
{{- fail "replicas is more than 1: without clusterAutoscaler.enabled there is one provider, because calls of one loop must reach the same" }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Annotations of pods: those of values come before those by which a Prometheus finds the metrics. */ -}}
{{- define "autoscaler.annotations" -}}
{{- toYaml (merge (dict) (.given | default dict) (dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .port))) -}}
{{- end -}}
