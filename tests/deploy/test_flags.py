"""Every flag and every variable that a manifest gives the tap is one that the program knows, and what a chart renders starts."""

import re
import subprocess
import unittest

import yaml

import cases
import charts
import manifests
from ports import answer, free_ports
from programs import ROOT, run, spectap


def invocations():
    """(where, arguments, variables) of every tap in every manifest."""
    for name, values in cases.CHART.items():
        yield from of_documents(name, manifests.parse(charts.manifests(charts.render(values))))
    for name, values in cases.EXAMPLE.items():
        yield from of_documents(name, manifests.parse(charts.manifests(charts.render(values, charts.example()))))
    yield from of_documents("kustomize", manifests.parse((ROOT / "deploy/kustomize/sidecar/container.yaml").read_text()))
    for name, service in yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"].items():
        if service["image"].startswith("spectap"):
            yield f"compose {name}", service["command"], list(service.get("environment", {}))
    dockerfile = (ROOT / "deploy/docker/Dockerfile").read_text()
    yield "Dockerfile", ["serve"], re.findall(r"\bSPECTAP_[A-Z_]+(?==)", dockerfile)


def of_documents(where, documents):
    for document in documents:
        # A patch has no containers of its own.
        pod = document.get("spec", {}).get("template", {}).get("spec") or document.get("spec", {})
        for container in pod.get("initContainers", []) + pod.get("containers", []):
            if "/spectap" in container.get("image", ""):
                yield where, container["args"], [it["name"] for it in container.get("env", [])]


def is_known(command):
    return re.search(rf"(?m)^  {command}\b", run(spectap(), "--help").stdout)


class Flags(unittest.TestCase):
    def test_every_flag_and_variable_is_known(self):
        checked = 0
        for where, arguments, variables in invocations():
            # `spectap healthcheck` comes with a change of its own; from then on it is held to its flags as well.
            if arguments[0] == "healthcheck" and not is_known("healthcheck"):
                continue
            with self.subTest(where, arguments=arguments):
                # The help is printed only if nothing before it was refused.
                done = run(spectap(), *arguments, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                known = set(re.findall(r"\[env: (SPECTAP_[A-Z_]+)", done.stdout))
                self.assertLessEqual(set(variables), known)
                checked += 1
        self.assertGreater(checked, 12)

    def test_a_flag_that_does_not_exist_would_be_found(self):
        self.assertEqual(run(spectap(), "serve", "--upstraem=http://e:1", "--help").returncode, 2)
        self.assertEqual(run(spectap(), "serve", "--inject=maybe", "--help").returncode, 2)

    def test_what_the_chart_renders_starts(self):
        (data, admin, lane) = free_ports(3)
        values = {
            "mode": "sidecar",
            "dataPort": data,
            "adminPort": admin,
            "lanes": [{"port": lane, "upstreamPort": 9}],
            "upstream": {"port": 8},
            "extraArgs": ["--no-replay", "--ready=self"],
        }
        documents = manifests.parse(charts.manifests(charts.render({"spectap": values}, charts.example())))
        (_, _, tap), = manifests.taps(documents)
        process = subprocess.Popen([spectap(), *tap["args"]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            self.assertEqual(answer(f"http://127.0.0.1:{admin}{tap['livenessProbe']['httpGet']['path']}"), 200)
            # Nothing listens behind them: the tap says so, which shows that it took both lanes.
            self.assertEqual([answer(f"http://127.0.0.1:{port}/v1/models") for port in (data, lane)], [502, 502])
        finally:
            process.terminate()
            said = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, 0, said)

