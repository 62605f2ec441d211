{{/* What to do next. A chart that includes the tap shows it in its own notes. */}}
{{- define "spectap.notes" -}}
{{- $namespace := .Release.Namespace }}
{{- $inject := include "spectap.inject" . }}
{{- $service := printf "%s.%s.svc" (include "spectap.fullname" .) $namespace }}
{{- $upgrade := printf "helm upgrade %s helm/spectap -n %s --reuse-values" .Release.Name $namespace }}
{{- if eq .Values.mode "gateway" }}
{{- if .Values.gateway.bypass }}
spectap is out of the way: {{ $service }}:{{ .Values.gateway.service.port }} sends clients straight to the engine's pods.
Put it back in with

  {{ $upgrade }} --set gateway.bypass=false
{{- else }}
spectap stands in front of {{ include "spectap.upstreamHost" . }}:{{ .Values.upstream.port }}, with injection {{ $inject }}.

Clients that shall be seen use

  http://{{ $service }}:{{ .Values.gateway.service.port }}

What it sees of them:

  kubectl -n {{ $namespace }} port-forward service/{{ include "spectap.named" (dict "context" . "suffix" "admin") }} {{ .Values.adminPort }}
  curl -s{{ if .Values.adminToken.protectMetrics }} -H "Authorization: Bearer $TOKEN"{{ end }} http://127.0.0.1:{{ .Values.adminPort }}/metrics | grep ^spectap_spec_decode_requests_total

Out again, with no change at a client:
{{- if .Values.upstream.podSelector }}

  {{ $upgrade }} --set gateway.bypass=true
{{- else }}
set upstream.podSelector to the labels of the engine's pods now, and one command
will do it: {{ $upgrade }} --set gateway.bypass=true
{{- end }}
{{- end }}
{{- else }}
The tap itself comes with the pods whose chart includes it. Injection there is {{ $inject }}.

A Service goes through the tap when its targetPort is {{ .Values.dataPort }}, and past it when it is {{ .Values.upstream.port }}. Out again, with no
restart (SERVICE is the engine's):

  kubectl -n {{ $namespace }} patch service SERVICE --type=json -p='[{"op":"replace","path":"/spec/ports/0/targetPort","value":{{ .Values.upstream.port }}}]'
{{- end }}
{{- if not .Values.gateway.bypass }}
{{- if eq $inject "off" }}

Next: no byte of a request is changed now, and vLLM's streams tell their numbers only to clients that ask for usage. When
traffic runs as before, let spectap ask for them
{{- if eq .Values.mode "gateway" }}:

  {{ $upgrade }} --set inject=auto
{{- else }}, by --set spectap.inject=auto for the
chart that includes it; in a pod that was patched, by the variable SPECTAP_INJECT.
{{- end }}
{{- end }}
{{- if or (eq .Values.engine "") (eq .Values.engine "vllm") }}

vLLM tells per-request numbers only when it is started with

  --per-request-spec-decode-metrics summary

Without it every request counts as absent, with the reason level_off.
{{- else if or (eq .Values.engine "tensorrt_llm") (eq .Values.engine "trtllm") }}

TensorRT-LLM tells per-request numbers only with this in the YAML of --extra_llm_api_options:

  per_request_spec_decode_stats: true
{{- else if eq .Values.engine "sglang" }}

SGLang needs no flag; each request must say return_spec_tokens_details, which spectap says with inject=auto.
{{- end }}
{{- if not (or .Values.serviceMonitor.enabled .Values.podMonitor.enabled) }}

Nothing scrapes it yet. With the Prometheus operator: --set {{ ternary "serviceMonitor" "podMonitor" (eq .Values.mode "gateway") }}.enabled=true
{{- end }}
{{- end }}
{{- end }}
