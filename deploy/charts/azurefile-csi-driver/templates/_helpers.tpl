{{- define "file.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* An image of root and values; a repository that begins with / comes after baseRepo. */ -}}
{{- define "file.image" -}}
{{- $tag := .image.tag | default .root.Chart.AppVersion -}}
{{- if hasPrefix "/" .image.repository -}}
image: {{ printf "%s%s:%s" .root.Values.image.baseRepo .image.repository $tag | quote }}
{{- else -}}
image: {{ printf "%s:%s" .image.repository $tag | quote }}
{{- end }}
imagePullPolicy: {{ .image.pullPolicy }}
{{- end -}}

{{- /* Restrictions of a container that needs no rights on the machine. */ -}}
{{- define "file.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- /* The environment of both parts of the driver. */ -}}
{{- define "file.env" -}}
- name: CSI_ENDPOINT
  value: unix:///csi/csi.sock
- name: AZURE_CREDENTIAL_FILE
  valueFrom:
    configMapKeyRef:
      name: {{ .Values.azureCredentialFileConfigMap }}
      key: path
      optional: true
{{- range $name, $value := dict "HTTPS_PROXY" .Values.driver.httpsProxy "HTTP_PROXY" .Values.driver.httpProxy "NO_PROXY" .Values.driver.noProxy }}
{{- with $value }}
- name: {{ $name }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* A sidecar of the controller. */ -}}
{{- define "file.sidecar" -}}
- name: {{ .name }}
  {{- include "file.image" (dict "root" .root "image" .image) | nindent 2 }}
  args:
    - --csi-address=/csi/csi.sock
    - --v={{ .root.Values.controller.logLevel }}
    - --leader-election
    - --leader-election-namespace={{ .root.Release.Namespace }}
    {{- range .args }}
    - {{ . }}
    {{- end }}
  {{- with .resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- include "file.confined" nil | nindent 2 }}
  volumeMounts:
    - name: socket-dir
      mountPath: /csi
{{- end -}}

{{- define "file.liveness" -}}
livenessProbe:
  httpGet:
    {{- if .hostNetwork }}
    host: 127.0.0.1
    {{- end }}
    path: /healthz
    port: {{ .port }}
  initialDelaySeconds: 30
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 5
{{- end -}}

{{- define "file.livenessArgs" -}}
- --csi-address=/csi/csi.sock
- --probe-timeout={{ .timeout }}
{{- if .hostNetwork }}
- --http-endpoint=127.0.0.1:{{ .port }}
{{- else }}
- --health-port={{ .port }}
{{- end }}
{{- end -}}

{{- /* Annotations of pods: those of values come before those by which a Prometheus finds the metrics. */ -}}
{{- define "file.annotations" -}}
{{- toYaml (merge (dict) (.given | default dict) (dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .port))) -}}
{{- end -}}
