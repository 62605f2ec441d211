"""Values for the chart and for examples/vllm, so that each switch and each way of rendering has its turn."""

ENGINE = {"app": "vllm"}
PROMETHEUS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]

CHART = {
    "gateway": {"upstream": {"service": "vllm"}},
    # As `inject: off` is read where somebody forgot the quotes.
    "gateway-unquoted-off": {"upstream": {"service": "vllm"}, "inject": False},
    "gateway-auto": {"upstream": {"service": "vllm", "namespace": "models", "port": 80}, "inject": "auto", "engine": "sglang"},
    "gateway-bypass": {"upstream": {"service": "vllm", "podSelector": ENGINE}, "gateway": {"bypass": True}},
    "gateway-everything": {
        "fullnameOverride": "tap",
        "image": {"digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "upstream": {"service": "vllm", "podSelector": ENGINE, "podPort": 8000},
        "lanes": [{"port": 8092, "upstreamPort": 8001}, {"port": 8093, "upstreamPort": 8002}],
        "engine": "vllm",
        "inject": "auto",
        "drainDelaySeconds": 10,
        "graceSeconds": 300,
        "readinessPath": "/readyz",
        "listenAddress": "[::]",
        "adminToken": {"secretName": "spectap", "protectMetrics": True},
        "extraArgs": ["--records=/records/spectap.jsonl", "--records-fsync=never"],
        "env": [{"name": "SPECTAP_LOG_FORMAT", "value": "json"}],
        "extraVolumes": [{"name": "records", "emptyDir": {"sizeLimit": "2Gi"}}],
        "extraVolumeMounts": [{"name": "records", "mountPath": "/records"}],
        "gateway": {
            "replicas": 3,
            "service": {"type": "LoadBalancer", "port": 80, "annotations": {"example.com/internal": "true"}},
            "podAnnotations": {"example.com/team": "serving"},
            "podLabels": {"team": "serving"},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
            "priorityClassName": "serving",
        },
        "serviceAccount": {"annotations": {"example.com/owner": "serving"}},
        "podDisruptionBudget": {"maxUnavailable": "25%"},
        "networkPolicy": {
            "enabled": True,
            "clients": [{"podSelector": {"matchLabels": {"app": "chat"}}}],
            "metrics": PROMETHEUS,
            "egress": [{"ports": [{"port": 4317, "protocol": "TCP"}]}],
        },
        "serviceMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Inference"}},
    },
    "gateway-plain": {
        "upstream": {"service": "vllm"},
        "nameOverride": "acceptance",
        "serviceAccount": {"create": False},
        "podDisruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": True},
        "podMonitor": {"enabled": True},
        "engine": "tensorrt_llm",
    },
    "sidecar": {
        "mode": "sidecar",
        "upstream": {"podSelector": ENGINE},
        "lanes": [{"port": 8092, "upstreamPort": 8001}],
        "networkPolicy": {"enabled": True, "metrics": PROMETHEUS},
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboard": {"enabled": True},
    },
}

# Under examples/vllm: the values of the tap are below `spectap`.
EXAMPLE = {
    "vllm": {},
    "vllm-ordinary": {
        "replicas": 2,
        "spectap": {
            "sidecar": {"native": False},
            "inject": "auto",
            "adminToken": {"secretName": "spectap"},
            "podMonitor": {"enabled": True},
        },
    },
    "vllm-ranks": {
        "gpus": 2,
        "extraArgs": ["--data-parallel-size=2", "--data-parallel-size-local=2", "--data-parallel-multi-port-external-lb"],
        "spectap": {"lanes": [{"port": 8092, "upstreamPort": 8001}], "drainDelaySeconds": 0, "graceSeconds": 60},
    },
}
