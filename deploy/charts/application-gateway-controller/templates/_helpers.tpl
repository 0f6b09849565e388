{{- define "gateway.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* What the program reads and writes where Ingresses are. */ -}}
{{- define "gateway.rules" -}}
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [update]
# Pods have the probes of backends. Of Secrets, the program lists those of type kubernetes.io/tls.
- apiGroups: [""]
  resources: [services, pods, secrets]
  verbs: [list, watch]
# The readiness gate of pods.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
# Rewrite rules and prohibited targets of AGIC's users.
- apiGroups: [appgw.ingress.azure.io]
  resources: [azureapplicationgatewayrewrites]
  verbs: [list, watch]
- apiGroups: [appgw.ingress.k8s.io]
  resources: [azureingressprohibitedtargets]
  verbs: [list, watch]
{{- if .Values.gatewayAPI.enabled }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, listenersets, httproutes, tcproutes, tlsroutes, referencegrants, backendtlspolicies]
  verbs: [list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, tcproutes/status, tlsroutes/status, backendtlspolicies/status]
  verbs: [update]
# Of ConfigMaps, the program keeps the certificates of authorities, which a BackendTLSPolicy names.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
{{- end }}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
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

{{- /* Annotations of pods: those of values come before those by which a Prometheus finds the metrics. */ -}}
{{- define "gateway.annotations" -}}
{{- toYaml (merge (dict) (.given | default dict) (dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .port))) -}}
{{- end -}}
