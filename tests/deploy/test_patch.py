"""The patches that docs/deployment.md gives to kubectl, by kubectl itself on the manifests of a Deployment that runs."""

import json
import re
import shlex
import tempfile
import unittest
from pathlib import Path

import yaml

import manifests
from programs import ROOT, program, run

FIXTURES = Path(__file__).with_name("fixtures")


def patched(document, *arguments):
    """What `kubectl patch` makes of a document; it needs no cluster for that."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(document, file)
        file.flush()
        done = run(program("kubectl"), "patch", "--local", "--output=yaml", f"--filename={file.name}", *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return yaml.safe_load(done.stdout)


def shown(kind):
    """The arguments after the name, of each `kubectl patch KIND NAME` of the page."""
    page = (ROOT / "docs/deployment.md").read_text()
    lines = re.findall(rf"(?m)^ +kubectl -n inference patch {kind} \S+ (.*)$", page)
    assert lines, f"the page patches no {kind}"
    return [shlex.split(line) for line in lines]


def engines():
    """The Deployments of vLLM in the fixtures, as their users have them."""
    for fixture, name in (("vllm.yaml", "qwen3"), ("production-stack.yaml", "vllm-opt125m-deployment-vllm")):
        yield manifests.of_kind(manifests.parse((FIXTURES / fixture).read_text()), "Deployment", name)


class Patch(unittest.TestCase):
    def test_the_tap_joins_a_deployment_and_nothing_else_changes(self):
        for before in engines():
            for arguments in shown("deployment"):
                with self.subTest(before["metadata"]["name"]):
                    after = patched(before, *arguments)
                    self.assertEqual(manifests.refusals([after], manifests.OLDEST_NATIVE), "")
                    ((_, pod, tap),) = manifests.taps([after])
                    self.assertEqual(manifests.beyond_restricted(pod, tap), [])
                    pod["initContainers"].remove(tap)
                    # The API server fills these in by itself.
                    after["spec"]["template"]["metadata"].pop("creationTimestamp", None)
                    after.pop("status", None)
                    self.assertEqual(after, before)

    def test_once_more_changes_nothing(self):
        (arguments, *_) = shown("deployment")
        for before in engines():
            once = patched(before, *arguments)
            self.assertEqual(patched(once, *arguments), once)

    def test_the_service_goes_through_the_tap_and_past_it_again(self):
        service = manifests.of_kind(manifests.parse((FIXTURES / "vllm.yaml").read_text()), "Service", "qwen3")
        was = json.dumps(service)
        past, through = shown("service")
        self.assertEqual(patched(service, *through)["spec"]["ports"][0]["targetPort"], 8090)
        back = patched(patched(service, *through), *past)
        self.assertEqual(back["spec"]["ports"][0]["targetPort"], 8000)
        back["spec"]["ports"][0]["targetPort"] = "http"
        self.assertEqual(json.dumps(back["spec"], sort_keys=True), json.dumps(json.loads(was)["spec"], sort_keys=True))
