{{/* Values that each are right and together are not: one sentence that says what to set. */}}
{{- define "spectap.checks" -}}
{{- $sidecar := eq .Values.mode "sidecar" }}
{{- if and (not $sidecar) (not .Values.upstream.service) }}
{{- fail "upstream.service is empty: name the Service of your engine, as in --set upstream.service=vllm" }}
{{- end }}
{{- if and $sidecar .Values.gateway.bypass }}
{{- fail "gateway.bypass is for mode gateway: to go past a sidecar, point the Service's targetPort at the engine's port" }}
{{- end }}
{{- if and .Values.gateway.bypass (not .Values.upstream.podSelector) }}
{{- fail "gateway.bypass needs upstream.podSelector: the labels of the engine's pods, to which clients are sent" }}
{{- end }}
{{- if and .Values.gateway.bypass (ne (include "spectap.upstreamNamespace" .) .Release.Namespace) }}
{{- fail "gateway.bypass can't be: a Service selects pods of its own namespace only, and upstream.namespace is another" }}
{{- end }}
{{- if and $sidecar .Values.serviceMonitor.enabled }}
{{- fail "serviceMonitor.enabled is for mode gateway: a sidecar has no Service of its own; use podMonitor.enabled" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled }}
{{- fail "serviceMonitor.enabled and podMonitor.enabled would scrape each tap twice, and sums would be twice too high: enable one" }}
{{- end }}
{{- if and $sidecar (or .Values.podMonitor.enabled .Values.networkPolicy.enabled) (not .Values.upstream.podSelector) }}
{{- fail "upstream.podSelector is empty: in mode sidecar podMonitor and networkPolicy need the labels of the pods that carry the tap" }}
{{- end }}
{{- if and .Values.adminToken.protectMetrics (not .Values.adminToken.secretName) }}
{{- fail "adminToken.protectMetrics needs adminToken.secretName: there is no token to ask for" }}
{{- end }}
{{- $ports := list (int .Values.dataPort) (int .Values.adminPort) }}
{{- if $sidecar }}{{ $ports = append $ports (int .Values.upstream.port) }}{{ end }}
{{- range .Values.lanes }}
{{- $ports = append $ports (int .port) }}
{{- if $sidecar }}{{ $ports = append $ports (int .upstreamPort) }}{{ end }}
{{- end }}
{{- if ne (len $ports) (len (uniq $ports)) }}
{{- fail (printf "a port is used twice in one pod: dataPort, adminPort, the lanes' ports%s are %s" (ternary " and the engine's" "" $sidecar) (join ", " $ports)) }}
{{- end }}
{{- if and $sidecar .Values.sidecar.native (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) }}
{{- fail (printf "sidecar.native needs Kubernetes 1.29 and this is %s: set sidecar.native=false" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- end }}
