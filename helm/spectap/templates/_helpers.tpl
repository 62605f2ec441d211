{{/* Names, labels and what all objects share. */}}

{{- define "spectap.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "spectap.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "spectap.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "spectap.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The full name with a suffix, within the 63 characters of a name. */}}
{{- define "spectap.named" -}}
{{- $suffix := printf "-%s" .suffix }}
{{- printf "%s%s" (include "spectap.fullname" .context | trunc (sub 63 (len $suffix) | int) | trimSuffix "-") $suffix }}
{{- end }}

{{- define "spectap.selectorLabels" -}}
app.kubernetes.io/name: {{ include "spectap.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spectap.labels" -}}
{{ include "spectap.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "spectap.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "spectap.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* `inject: off` without quotes is the boolean false to YAML; it means what it says all the same. */}}
{{- define "spectap.inject" -}}
{{- if kindIs "bool" .Values.inject }}{{ ternary "auto" "off" .Values.inject }}{{ else }}{{ .Values.inject }}{{ end }}
{{- end }}

{{- define "spectap.upstreamNamespace" -}}
{{- default .Release.Namespace .Values.upstream.namespace }}
{{- end }}

{{/* The engine's host as the tap reaches it. */}}
{{- define "spectap.upstreamHost" -}}
{{- if eq .Values.mode "sidecar" -}}
127.0.0.1
{{- else -}}
{{ .Values.upstream.service }}.{{ include "spectap.upstreamNamespace" . }}.svc
{{- end }}
{{- end }}

{{/* Labels of the pods that carry the tap. */}}
{{- define "spectap.tappedPods" -}}
{{- if eq .Values.mode "sidecar" }}
{{- toYaml .Values.upstream.podSelector }}
{{- else }}
{{- include "spectap.selectorLabels" . }}
{{- end }}
{{- end }}

{{/* Seconds that a pod with the tap may take to end. */}}
{{- define "spectap.terminationGracePeriodSeconds" -}}
{{- add .Values.drainDelaySeconds .Values.graceSeconds 5 }}
{{- end }}

{{/* What a monitor says about how to scrape. */}}
{{- define "spectap.endpoint" -}}
path: /metrics
interval: {{ .interval }}
{{- with .context.Values.adminToken }}
{{- if .protectMetrics }}
authorization:
  type: Bearer
  credentials:
    name: {{ .secretName }}
    key: {{ .key }}
{{- end }}
{{- end }}
{{- end }}
