{{/* The tap as a container. The same in a gateway's pod and beside an engine. */}}

{{- define "spectap.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/*
A native sidecar gets its SIGTERM when the engine has ended: nobody can connect to anything any more, and a delay would only
be waited out.
*/}}
{{- define "spectap.drainDelaySeconds" -}}
{{- if and (eq .Values.mode "sidecar") .Values.sidecar.native }}0{{ else }}{{ .Values.drainDelaySeconds }}{{ end }}
{{- end }}

{{- define "spectap.args" -}}
- serve
- --upstream={{ .Values.upstream.scheme }}://{{ include "spectap.upstreamHost" . }}:{{ .Values.upstream.port }}
- --listen={{ .Values.listenAddress }}:{{ .Values.dataPort }}
{{- range .Values.lanes }}
- --lane={{ $.Values.listenAddress }}:{{ .port }}={{ $.Values.upstream.scheme }}://{{ include "spectap.upstreamHost" $ }}:{{ .upstreamPort }}
{{- end }}
- --admin-listen={{ .Values.listenAddress }}:{{ .Values.adminPort }}
{{- with .Values.engine }}
- --engine={{ . }}
{{- end }}
- --inject={{ include "spectap.inject" . }}
- --drain-delay={{ include "spectap.drainDelaySeconds" . }}s
- --grace={{ .Values.graceSeconds }}s
{{- if .Values.adminToken.secretName }}
- --admin-token-file=/etc/spectap/token/{{ .Values.adminToken.key }}
{{- if .Values.adminToken.protectMetrics }}
- --protect-metrics
{{- end }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "spectap.volumes" -}}
{{- if .Values.adminToken.secretName }}
- name: spectap-token
  secret:
    secretName: {{ .Values.adminToken.secretName }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "spectap.container" -}}
- name: spectap
  image: {{ include "spectap.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- if and (eq .Values.mode "sidecar") .Values.sidecar.native }}
  restartPolicy: Always
  {{- end }}
  args:
    {{- include "spectap.args" . | nindent 4 }}
  {{- with .Values.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: spectap
      containerPort: {{ .Values.dataPort }}
      protocol: TCP
    {{- range .Values.lanes }}
    - name: spectap-{{ .port }}
      containerPort: {{ .port }}
      protocol: TCP
    {{- end }}
    - name: spectap-admin
      containerPort: {{ .Values.adminPort }}
      protocol: TCP
  # The engine waits for this one beside a native sidecar. Therefore no probe asks for the engine.
  startupProbe:
    httpGet:
      path: /livez
      port: spectap-admin
    periodSeconds: 1
    failureThreshold: 30
  livenessProbe:
    httpGet:
      path: /livez
      port: spectap-admin
    periodSeconds: 10
    timeoutSeconds: 3
  readinessProbe:
    httpGet:
      path: {{ .Values.readinessPath }}
      port: spectap-admin
    periodSeconds: 5
    timeoutSeconds: 3
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
    readOnlyRootFilesystem: true
    runAsGroup: 65532
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile:
      type: RuntimeDefault
  {{- if or .Values.adminToken.secretName .Values.extraVolumeMounts }}
  volumeMounts:
    {{- if .Values.adminToken.secretName }}
    - name: spectap-token
      mountPath: /etc/spectap/token
      readOnly: true
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
