"""Manifests of Kubernetes: reading them, their containers, and whether a cluster would take them."""

import tempfile
from pathlib import Path

import jsonschema
import yaml

from programs import program, run

# What the chart claims to run on; the native sidecar needs more than the oldest.
OLDEST, OLDEST_NATIVE, NEWEST = "1.25", "1.29", "1.37"

_LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}, "labels": _LABELS, "annotations": _LABELS},
}
_ENDPOINT = {
    "type": "object",
    "required": ["port"],
    "additionalProperties": False,
    "properties": {
        "port": {"type": "string"},
        "path": {"type": "string"},
        "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
        "authorization": {
            "type": "object",
            "required": ["credentials"],
            "additionalProperties": False,
            "properties": {
                "type": {"const": "Bearer"},
                "credentials": {
                    "type": "object",
                    "required": ["name", "key"],
                    "additionalProperties": False,
                    "properties": {"name": {"type": "string", "minLength": 1}, "key": {"type": "string", "minLength": 1}},
                },
            },
        },
    },
}
_SELECTOR = {
    "type": "object",
    "required": ["matchLabels"],
    "additionalProperties": False,
    "properties": {"matchLabels": {**_LABELS, "minProperties": 1}},
}
_RULE = {
    "type": "object",
    "required": ["expr"],
    "oneOf": [{"required": ["record"]}, {"required": ["alert"]}],
    "additionalProperties": False,
    "properties": {
        "record": {"type": "string"},
        "alert": {"type": "string"},
        "expr": {"type": "string"},
        "for": {"type": "string"},
        "keep_firing_for": {"type": "string"},
        "labels": _LABELS,
        "annotations": _LABELS,
    },
}
_GROUP = {
    "type": "object",
    "required": ["name", "rules"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "interval": {"type": "string"},
        "limit": {"type": "integer"},
        "rules": {"type": "array", "items": _RULE},
    },
}


def _kind(spec):
    return {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": "monitoring.coreos.com/v1"},
            "kind": {"type": "string"},
            "metadata": _METADATA,
            "spec": {"type": "object", "required": list(spec), "additionalProperties": False, "properties": spec},
        },
    }


# The kinds of the Prometheus operator, as far as this repository uses them.
OPERATOR = {
    "ServiceMonitor": _kind({"selector": _SELECTOR, "endpoints": {"type": "array", "minItems": 1, "items": _ENDPOINT}}),
    "PodMonitor": _kind({"selector": _SELECTOR, "podMetricsEndpoints": {"type": "array", "minItems": 1, "items": _ENDPOINT}}),
    "PrometheusRule": _kind({"groups": {"type": "array", "items": _GROUP}}),
}


def parse(text):
    """The documents of a text that are not empty."""
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(documents, kind, name=None):
    """The one document of this kind, and of this name where it is given."""
    found = [it for it in documents if it["kind"] == kind and name in (None, it["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} documents are {kind} {name or ''}"
    return found[0]


def pods(documents):
    """Every pod's spec, with the name of what makes it."""
    for document in documents:
        if document["kind"] in ("Deployment", "StatefulSet"):
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]
        elif document["kind"] == "Pod":
            yield document["metadata"]["name"], document["spec"]


def containers(pod):
    """All containers of a pod's spec."""
    return pod.get("initContainers", []) + pod["containers"]


def taps(documents):
    """Every container of the tap's image."""
    for name, pod in pods(documents):
        for container in containers(pod):
            if "/spectap" in container["image"]:
                yield name, pod, container


def refusals(documents, version):
    """What a cluster of this version would not take, as text; nothing if all is well."""
    said = []
    for document in documents:
        schema = OPERATOR.get(document["kind"])
        if schema:
            said += [f"{document['kind']}: {error.message}" for error in jsonschema.Draft7Validator(schema).iter_errors(document)]
    builtin = [document for document in documents if document["kind"] not in OPERATOR]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        # One a file, since the validator stops at the first error of each.
        for number, document in enumerate(builtin):
            files.append(Path(folder, f"{number}-{document['kind']}.yaml"))
            files[-1].write_text(yaml.safe_dump(document))
        done = run(program("kubernetes-validate"), "-k", version, "--strict", *files)
        if done.returncode != 0 or "WARN" in done.stdout + done.stderr:
            said.append(done.stdout + done.stderr)
    return "\n".join(said)


def beyond_restricted(pod, container):
    """Where a container asks for more than the Pod Security Standard `restricted` allows, or has a root that it could write."""
    security = container.get("securityContext", {})
    of_pod = pod.get("securityContext", {})
    said = []
    if security.get("allowPrivilegeEscalation") is not False:
        said.append("allowPrivilegeEscalation")
    if security.get("capabilities") != {"drop": ["ALL"]}:
        said.append("capabilities")
    if security.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True or security.get("runAsUser") != 65532:
        said.append("runAsNonRoot")
    if security.get("seccompProfile", of_pod.get("seccompProfile")) != {"type": "RuntimeDefault"}:
        said.append("seccompProfile")
    if security.get("readOnlyRootFilesystem") is not True:
        said.append("readOnlyRootFilesystem")
    if security.get("privileged") or any(port.get("hostPort") for port in container.get("ports", [])):
        said.append("host")
    return said
