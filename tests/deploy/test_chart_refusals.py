"""Values that can't be are refused before anything is installed, in words that say what to set."""

import json
import unittest

import cases
import charts

GATEWAY = {"upstream": {"service": "vllm"}}

# What is wrong -> values, and what the message must name.
AGAINST_THE_SCHEMA = {
    "a misspelt value": ({"upstraem": {"service": "vllm"}}, ["upstraem", "not allowed"]),
    "a misspelt value further down": ({**GATEWAY, "gateway": {"replica": 2}}, ["gateway", "replica", "not allowed"]),
    "a mode that does not exist": ({**GATEWAY, "mode": "proxy"}, ["mode", "gateway", "sidecar"]),
    "injection as a switch": ({**GATEWAY, "inject": True}, ["inject", "auto", "off"]),
    "an engine that does not exist": ({**GATEWAY, "engine": "vlm"}, ["engine", "vllm", "sglang"]),
    "a port too high": ({**GATEWAY, "dataPort": 70000}, ["dataPort", "65,535"]),
    "a port as text": ({"upstream": {"service": "vllm", "port": "8000"}}, ["upstream", "port", "integer"]),
    "an address as a service": ({"upstream": {"service": "http://vllm:8000"}}, ["upstream", "service", "pattern"]),
    "a duration where seconds are meant": ({**GATEWAY, "graceSeconds": "25s"}, ["graceSeconds", "integer"]),
    "a flag without its dashes": ({**GATEWAY, "extraArgs": ["no-replay"]}, ["extraArgs", "^--"]),
    "a lane without its engine": ({**GATEWAY, "lanes": [{"port": 8092}]}, ["lanes", "upstreamPort"]),
    "a readiness of one's own": ({**GATEWAY, "readinessPath": "/health"}, ["readinessPath", "/livez", "/readyz"]),
    "a digest that is a tag": ({**GATEWAY, "image": {"digest": "0.1.0"}}, ["image", "digest", "sha256"]),
    "an interval without a unit": ({**GATEWAY, "podMonitor": {"interval": "15"}}, ["podMonitor", "interval"]),
}
POD = {"podSelector": {"app": "vllm"}}
TOGETHER = {
    "no engine": ({}, ["upstream.service", "--set upstream.service=vllm"]),
    "a bypass to nowhere": ({**GATEWAY, "gateway": {"bypass": True}}, ["gateway.bypass", "upstream.podSelector"]),
    "a bypass into another namespace": (
        {"upstream": {"service": "vllm", "namespace": "models", **POD}, "gateway": {"bypass": True}},
        ["gateway.bypass", "upstream.namespace"],
    ),
    "a bypass of a sidecar": ({"mode": "sidecar", "gateway": {"bypass": True}}, ["gateway.bypass", "targetPort"]),
    "a ServiceMonitor of a sidecar": ({"mode": "sidecar", "serviceMonitor": {"enabled": True}}, ["podMonitor.enabled"]),
    "two monitors": (
        {**GATEWAY, "serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
        ["serviceMonitor.enabled", "podMonitor.enabled", "twice"],
    ),
    "a monitor of no pod": ({"mode": "sidecar", "podMonitor": {"enabled": True}}, ["upstream.podSelector"]),
    "a policy for no pod": ({"mode": "sidecar", "networkPolicy": {"enabled": True}}, ["upstream.podSelector"]),
    "protected metrics without a token": (
        {**GATEWAY, "adminToken": {"protectMetrics": True}},
        ["adminToken.protectMetrics", "adminToken.secretName"],
    ),
    "one port twice": ({**GATEWAY, "adminPort": 8090}, ["used twice", "8090, 8090"]),
    "a lane on a sidecar's engine": (
        {"mode": "sidecar", "lanes": [{"port": 8000, "upstreamPort": 8001}]},
        ["used twice", "8000"],
    ),
}


def refusal(values, chart=charts.CHART):
    """What Helm says to these values, or None if it takes them."""
    try:
        charts.render(values, chart)
    except Exception as error:  # helm-python-sdk has one class per cause
        return str(error)
    return None


class Refused(unittest.TestCase):
    def assert_refused(self, table):
        for what, (values, named) in table.items():
            with self.subTest(what):
                said = refusal(values)
                self.assertIsNotNone(said, "it was taken")
                for word in named:
                    self.assertIn(word, said)

    def test_by_the_schema(self):
        self.assert_refused(AGAINST_THE_SCHEMA)

    def test_for_what_does_not_go_together(self):
        self.assert_refused(TOGETHER)

    def test_a_chart_that_includes_the_tap_must_ask_for_the_sidecar(self):
        said = refusal({"spectap": {"mode": "gateway", **GATEWAY}}, charts.example())
        self.assertIn("spectap.mode must be sidecar", said or "")

    def test_every_object_of_the_schema_is_closed(self):
        schema = json.loads((charts.CHART / "values.schema.json").read_text())
        # What Kubernetes itself defines, and what a parent chart hands down.
        foreign = {"global", "requests", "limits", "affinity"}

        def walk(name, node, items=False):
            if node.get("type") == "object":
                closed = "additionalProperties" in node
                self.assertTrue(closed or items or name in foreign, f"{name} takes anything")
            for key, child in node.get("properties", {}).items():
                self.assertIn("description", {**child, **({"description": ""} if child.get("properties") else {})}, key)
                walk(key, child)
            if "items" in node:
                walk(name, node["items"], items=True)

        walk("values", schema)
        self.assertIn("gateway", cases.CHART)
