{{- /*
The objects that every service has. Each template gets a dictionary with `root`, the chart's own `.`, and
`facts`, which a user cannot change: they describe the program.

  port, portName       the port of requests
  live, ready          paths of the probes, at probePort (default: portName)
  extraPorts           further ports, by name
  user                 the user of the image
  env, args            settings of the program
  grace                seconds until a stopped pod is ended
  startSeconds         seconds that a start may take
  tlsByFlags           true if TLS_CERTIFICATE and so on are read
  mounts, volumes      lists of Kubernetes' own objects
  token                true if the pod speaks to the API server
  annotations          annotations of the pod
*/ -}}

{{- define "parts.metadata" -}}
metadata:
  name: {{ .root.Release.Name }}
  {{- if ne .root.Release.Namespace "default" }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
{{- end }}

{{- define "parts.account" -}}
apiVersion: v1
kind: ServiceAccount
{{ include "parts.metadata" . }}
automountServiceAccountToken: false
{{- end }}

{{- define "parts.service" -}}
apiVersion: v1
kind: Service
{{ include "parts.metadata" . }}
spec:
  type: {{ .root.Values.service.type }}
  selector:
    app: {{ .root.Release.Name }}
  ports:
    - name: {{ .facts.portName }}
      port: {{ .root.Values.service.port }}
      targetPort: {{ .facts.portName }}
{{- end }}

{{- define "parts.probe" -}}
{{- $tls := .root.Values.tls | default dict -}}
{{- $port := .facts.probePort | default .facts.portName -}}
{{- if and .facts.tlsByFlags $tls.clientCa -}}
# A probe has no certificate, which every client needs here.
tcpSocket:
  port: {{ $port }}
{{- else -}}
httpGet:
  path: {{ .path | quote }}
  port: {{ $port }}
  {{- if and .facts.tlsByFlags $tls.secret }}
  scheme: HTTPS
  {{- end }}
{{- end -}}
{{- end }}

{{- define "parts.deployment" -}}
{{- $values := .root.Values -}}
{{- $facts := .facts -}}
{{- $name := .root.Release.Name -}}
{{- $tls := $values.tls | default dict -}}
{{- $own := keys ($values.env | default dict) ($values.secretEnv | default dict) -}}
{{- range $variable := concat (keys ($facts.env | default dict)) (list "TLS_CERTIFICATE" "TLS_KEY" "TLS_CLIENT_CA") -}}
{{- if has $variable $own -}}
{{- fail (printf "the chart sets %s itself, from its other values; leave it out of `env` and `secretEnv`" $variable) -}}
{{- end -}}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
{{ include "parts.metadata" . }}
spec:
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  selector:
    matchLabels:
      app: {{ $name }}
  strategy:
    # A new pod serves before an old one leaves.
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app: {{ $name }}
      {{- with $facts.annotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: {{ $facts.token | default false }}
      terminationGracePeriodSeconds: {{ $facts.grace }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app: {{ $name }}
      securityContext:
        runAsNonRoot: true
        runAsUser: {{ $facts.user }}
        runAsGroup: {{ $facts.user }}
        # The group may read mounted keys.
        fsGroup: {{ $facts.user }}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ $facts.container | default $name }}
          image: {{ printf "%s:%s" $values.image.repository ($values.image.tag | toString) | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          {{- with $facts.args }}
          args:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          env:
            {{- range $variable, $value := merge (dict) ($facts.env | default dict) ($values.env | default dict) }}
            - name: {{ $variable }}
              value: {{ $value | toString | quote }}
            {{- end }}
            {{- if and $facts.tlsByFlags $tls.secret }}
            - name: TLS_CERTIFICATE
              value: /etc/tls/tls.crt
            - name: TLS_KEY
              value: /etc/tls/tls.key
            {{- if $tls.clientCa }}
            - name: TLS_CLIENT_CA
              value: /etc/tls-clients/ca.crt
            {{- end }}
            {{- end }}
            {{- range $variable, $from := $values.secretEnv | default dict }}
            - name: {{ $variable }}
              valueFrom:
                secretKeyRef:
                  name: {{ $from.name }}
                  key: {{ $from.key }}
            {{- end }}
          ports:
            - name: {{ $facts.portName }}
              containerPort: {{ $facts.port }}
            {{- range $port, $number := $facts.extraPorts | default dict }}
            - name: {{ $port }}
              containerPort: {{ $number }}
            {{- end }}
          startupProbe:
            {{- include "parts.probe" (merge (dict "path" $facts.live) .) | nindent 12 }}
            periodSeconds: 1
            failureThreshold: {{ $facts.startSeconds | default 30 }}
          livenessProbe:
            {{- include "parts.probe" (merge (dict "path" $facts.live) .) | nindent 12 }}
            periodSeconds: 10
            timeoutSeconds: 2
          readinessProbe:
            {{- include "parts.probe" (merge (dict "path" $facts.ready) .) | nindent 12 }}
            periodSeconds: 2
            failureThreshold: 2
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          resources:
            requests:
              cpu: {{ $values.resources.cpuRequest | quote }}
              memory: {{ $values.resources.memoryRequest | quote }}
            limits:
              {{- with $values.resources.cpuLimit }}
              cpu: {{ . | quote }}
              {{- end }}
              memory: {{ $values.resources.memoryLimit | quote }}
          {{- if or $facts.mounts $tls.secret }}
          volumeMounts:
            {{- with $facts.mounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            {{- if $tls.secret }}
            - name: tls
              mountPath: /etc/tls
              readOnly: true
            {{- end }}
            {{- if and $tls.secret $tls.clientCa }}
            - name: tls-clients
              mountPath: /etc/tls-clients
              readOnly: true
            {{- end }}
          {{- end }}
      {{- if or $facts.volumes $tls.secret }}
      volumes:
        {{- with $facts.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if $tls.secret }}
        - name: tls
          secret:
            secretName: {{ $tls.secret }}
            # 0440 in octal digits, which two versions of YAML read in two ways.
            defaultMode: 288
        {{- end }}
        {{- if and $tls.secret $tls.clientCa }}
        - name: tls-clients
          configMap:
            name: {{ $tls.clientCa }}
        {{- end }}
      {{- end }}
{{- end }}

{{- define "parts.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "parts.metadata" . }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      app: {{ .root.Release.Name }}
{{- end }}

{{- define "parts.autoscaler" -}}
{{- if .root.Values.autoscaling.enabled -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
{{ include "parts.metadata" . }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .root.Release.Name }}
  minReplicas: {{ .root.Values.autoscaling.minReplicas }}
  maxReplicas: {{ .root.Values.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ .root.Values.autoscaling.cpuPercent }}
{{- end }}
{{- end }}

{{- define "parts.policy" -}}
{{- if .root.Values.networkPolicy.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "parts.metadata" . }}
spec:
  podSelector:
    matchLabels:
      app: {{ .root.Release.Name }}
  policyTypes: [Ingress]
  ingress:
    - ports:
        - port: {{ .facts.portName }}
      {{- with .root.Values.networkPolicy.from }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- range .facts.extraIngress }}
    - ports:
        - port: {{ .port }}
      from:
        {{- toYaml .from | nindent 8 }}
    {{- end }}
{{- end }}
{{- end }}

{{- /* All objects, in one file. */ -}}
{{- define "parts.all" -}}
{{ include "parts.service" . }}
---
{{ include "parts.account" . }}
---
{{ include "parts.deployment" . }}
---
{{ include "parts.budget" . }}
{{- with include "parts.autoscaler" . }}
---
{{ . }}
{{- end }}
{{- with include "parts.policy" . }}
---
{{ . }}
{{- end }}
{{- end }}
