"""The component, on a Deployment as users write it and on vLLM's production-stack: the tap is beside every engine, Services go
through it, and nothing else has changed."""

import copy
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import yaml

import manifests
from programs import ROOT, program, run

FIXTURES = Path(__file__).with_name("fixtures")
COMPONENT = ROOT / "deploy/kustomize/sidecar"
STACK = ROOT / "helm/spectap/examples/production-stack"


def build(folder):
    done = run(program("kubectl"), "kustomize", folder)
    assert done.returncode == 0, done.stderr
    return manifests.parse(done.stdout)


class Scratch(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="spectap-kustomize-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def kustomization(self, **content):
        kind = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
        (self.folder / "kustomization.yaml").write_text(yaml.safe_dump({**kind, **content}))

    def relative(self, path):
        return os.path.relpath(path.resolve(), self.folder.resolve())


class Component(Scratch):
    def setUp(self):
        super().setUp()
        shutil.copy(FIXTURES / "vllm.yaml", self.folder / "base.yaml")
        self.before = manifests.parse((FIXTURES / "vllm.yaml").read_text())
        self.kustomization(resources=["base.yaml"], components=[self.relative(COMPONENT)])

    def test_the_tap_stands_beside_the_engine_and_the_engine_is_as_it_was(self):
        pod = manifests.of_kind(build(self.folder), "Deployment", "qwen3")["spec"]["template"]["spec"]
        was = manifests.of_kind(self.before, "Deployment", "qwen3")["spec"]["template"]["spec"]
        self.assertEqual(sorted(it["name"] for it in pod["initContainers"]), ["download", "spectap"])
        tap = next(it for it in pod["initContainers"] if it["name"] == "spectap")
        self.assertEqual(tap["restartPolicy"], "Always")
        # Ports, their names, probes, volumes, the time to end: all as they were.
        pod["initContainers"].remove(tap)
        self.assertEqual(pod, was)

    def test_the_tap_goes_to_the_port_that_the_engine_has(self):
        documents = build(self.folder)
        (_, pod, tap), = manifests.taps(documents)
        engine = pod["containers"][0]["ports"][0]["containerPort"]
        values = {it["name"]: it["value"] for it in tap["env"]}
        self.assertEqual(values["SPECTAP_UPSTREAM"], f"http://127.0.0.1:{engine}")
        ports = {it["name"]: it["containerPort"] for it in tap["ports"]}
        self.assertEqual(values["SPECTAP_LISTEN"], f"0.0.0.0:{ports['spectap']}")
        self.assertEqual(values["SPECTAP_ADMIN_LISTEN"], f"0.0.0.0:{ports['spectap-admin']}")
        self.assertEqual(values["SPECTAP_INJECT"], "off")

    def test_the_service_keeps_its_name_and_port_and_goes_through_the_tap(self):
        documents = build(self.folder)
        service = manifests.of_kind(documents, "Service", "qwen3")
        (_, _, tap), = manifests.taps(documents)
        was = copy.deepcopy(manifests.of_kind(self.before, "Service", "qwen3"))
        was["spec"]["ports"][0]["targetPort"] = tap["ports"][0]["containerPort"]
        self.assertEqual(service, was)

    def test_what_is_none_of_an_engine_s_is_left_alone(self):
        documents = build(self.folder)
        for kind, name in (("Deployment", "sessions"), ("Service", "sessions"), ("ServiceMonitor", "qwen3")):
            self.assertEqual(manifests.of_kind(documents, kind, name), manifests.of_kind(self.before, kind, name))

    def test_a_cluster_takes_it_and_the_tap_is_restricted(self):
        documents = build(self.folder)
        for version in (manifests.OLDEST_NATIVE, manifests.NEWEST):
            self.assertEqual(manifests.refusals(documents, version), "")
        for _, pod, tap in manifests.taps(documents):
            self.assertEqual(manifests.beyond_restricted(pod, tap), [])

    def test_an_overlay_takes_the_second_step_and_chooses_the_image(self):
        # docs/deployment.md shows this patch.
        page = (ROOT / "docs/deployment.md").read_text()
        patch = page.split("# inject.yaml\n")[1].split("```")[0]
        (self.folder / "inject.yaml").write_text(patch)
        image = {"name": "ghcr.io/spectap/spectap", "newName": "registry.example.com/spectap", "newTag": "1.2.3"}
        self.kustomization(
            resources=["base.yaml"],
            components=[self.relative(COMPONENT)],
            patches=[{"path": "inject.yaml", "target": {"kind": "Deployment", "name": "qwen3"}}],
            images=[image],
        )
        documents = build(self.folder)
        (_, pod, tap), = manifests.taps(documents)
        values = [(it["name"], it["value"]) for it in tap["env"]]
        self.assertIn(("SPECTAP_INJECT", "auto"), values)
        self.assertEqual(len(values), 4)
        self.assertEqual(tap["image"], "registry.example.com/spectap:1.2.3")
        self.assertEqual(pod["containers"][0]["image"], "vllm/vllm-openai:v0.32.0")

    def test_the_patch_for_kubectl_is_the_same_container(self):
        alone = yaml.safe_load((ROOT / "deploy/kubernetes/sidecar.yaml").read_text())
        self.assertEqual(list(alone), ["spec"])
        whole = yaml.safe_load((COMPONENT / "container.yaml").read_text())
        self.assertEqual(alone["spec"], whole["spec"])


class ProductionStack(Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "stack").mkdir()
        shutil.copy(FIXTURES / "production-stack.yaml", self.folder / "stack/stack.yaml")
        shutil.copy(STACK / "stack/kustomization.yaml", self.folder / "stack")
        top = yaml.safe_load((STACK / "kustomization.yaml").read_text())
        self.assertTrue((STACK / top["components"][0]).resolve().samefile(COMPONENT))
        self.kustomization(resources=top["resources"], components=[self.relative(COMPONENT)])
        self.before = manifests.parse((FIXTURES / "production-stack.yaml").read_text())
        self.documents = build(self.folder)

    def test_every_engine_gets_the_tap_and_the_router_does_not(self):
        found = [name for name, _, _ in manifests.taps(self.documents)]
        self.assertEqual(found, ["vllm-opt125m-deployment-vllm"])
        router = manifests.of_kind(self.documents, "Deployment", "vllm-deployment-router")
        was = manifests.of_kind(self.before, "Deployment", "vllm-deployment-router")
        self.assertEqual(router["spec"], was["spec"])
        service = manifests.of_kind(self.documents, "Service", "vllm-router-service")
        self.assertEqual(service["spec"]["ports"][0]["targetPort"], 8000)

    def test_the_router_goes_to_the_tap_s_port_of_each_pod(self):
        (_, pod, tap), = manifests.taps(self.documents)
        example = yaml.safe_load((STACK / "values.yaml").read_text())["routerSpec"]["extraArgs"]
        router = manifests.of_kind(self.documents, "Deployment", "vllm-deployment-router")
        args = router["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertEqual(args[-2:], example)
        self.assertEqual(int(args[-1]), tap["ports"][0]["containerPort"])
        self.assertEqual(pod["containers"][0]["ports"][0]["containerPort"], 8000)

    def test_only_the_first_port_of_an_engine_s_service_goes_through_the_tap(self):
        ports = manifests.of_kind(self.documents, "Service", "vllm-opt125m-engine-service")["spec"]["ports"]
        self.assertEqual([port["targetPort"] for port in ports], [8090, "zmq-port", "ucx-port"])

    def test_a_cluster_takes_it(self):
        self.assertEqual(manifests.refusals(self.documents, manifests.OLDEST_NATIVE), "")
        self.assertEqual(manifests.refusals(self.documents, manifests.NEWEST), "")
