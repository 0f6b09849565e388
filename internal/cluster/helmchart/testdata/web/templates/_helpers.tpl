{{- define "web.password" -}}
{{ .Values.password | default (randAlphaNum 20) }}
{{- end }}
