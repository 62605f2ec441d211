{{/*
What another chart includes to get the tap into its pod. That chart depends on this one with `mode: sidecar` and hands over
`.Subcharts.spectap`; examples/vllm shows it.
*/}}

{{/* Items of the pod's initContainers: the native sidecar, or nothing. */}}
{{- define "spectap.sidecar.initContainers" -}}
{{- include "spectap.sidecar.check" . }}
{{- if .Values.sidecar.native }}{{ include "spectap.container" . }}{{ end }}
{{- end }}

{{/* Items of the pod's containers: the ordinary sidecar, or nothing. */}}
{{- define "spectap.sidecar.containers" -}}
{{- include "spectap.sidecar.check" . }}
{{- if not .Values.sidecar.native }}{{ include "spectap.container" . }}{{ end }}
{{- end }}

{{/* Items of the pod's volumes, or nothing. */}}
{{- define "spectap.sidecar.volumes" -}}
{{- include "spectap.volumes" . | trim }}
{{- end }}

{{/*
`lifecycle` of the engine's container: it stays while connections still come. Give the engine itself graceSeconds to let its
streams end (vLLM: --shutdown-timeout), or it cuts them, tap or no tap.
*/}}
{{- define "spectap.sidecar.engineLifecycle" -}}
preStop:
  exec:
    command: [sleep, {{ .Values.drainDelaySeconds | toString | quote }}]
{{- end }}

{{- define "spectap.sidecar.check" -}}
{{- if ne .Values.mode "sidecar" }}
{{- fail "spectap.mode must be sidecar where another chart includes the tap" }}
{{- end }}
{{- end }}
