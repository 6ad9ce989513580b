{{- /* The facts of the webhook, for each of its files. */ -}}
{{- define "webhook.facts" -}}
port: 7080
portName: webhook-http
container: webhook
live: /status
ready: /status
grace: 20
user: 999
tlsByFlags: true
token: {{ not (empty .Values.route.tokenSecret) }}
annotations:
  prometheus.io/scrape: "true"
  prometheus.io/port: "7080"
env:
  # The hooks must be reached. PUT /route stays off on this address without ROUTE_TOKEN_FILE.
  HOST: 0.0.0.0
  PORT: "7080"
  {{- if .Values.route.tokenSecret }}
  ROUTE_TOKEN_FILE: /etc/route/token
  ROUTE_NAMESPACES: {{ .Values.route.namespaces | quote }}
  {{- end }}
  {{- if .Values.controllers.tokenSecret }}
  BEARER_TOKEN_FILE: /etc/calls/token
  {{- end }}
mounts:
  {{- if .Values.route.tokenSecret }}
  - name: route
    mountPath: /etc/route
    readOnly: true
  {{- end }}
  {{- if .Values.controllers.tokenSecret }}
  - name: calls
    mountPath: /etc/calls
    readOnly: true
  {{- end }}
volumes:
  {{- if .Values.route.tokenSecret }}
  - name: route
    secret:
      secretName: {{ .Values.route.tokenSecret }}
      defaultMode: 288
  {{- end }}
  {{- if .Values.controllers.tokenSecret }}
  - name: calls
    secret:
      secretName: {{ .Values.controllers.tokenSecret }}
      defaultMode: 288
  {{- end }}
{{- end }}
