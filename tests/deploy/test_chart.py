"""The chart: what each set of values renders, what a cluster says to it, and what is refused."""

import json
import os
import re
import tempfile
import unittest
from pathlib import Path

import yaml

import cases
import charts
import manifests
from programs import ROOT, program, run

SNAPSHOTS = Path(__file__).with_name("snapshots")


def renderings():
    """Name, values, and what the chart or its example renders under them."""
    for name, values in cases.CHART.items():
        yield name, values, charts.render(values)
    for name, values in cases.EXAMPLE.items():
        yield name, values, charts.render(values, charts.example(), release="qwen3")


def without_files(text):
    """A rendering with what is copied from files/ left out: another test holds it against those files."""
    text = re.sub(r"(?ms)^(  groups:)\n.*?(?=^---|\Z)", r"\1 # rules.yml and alerts.yml\n", text)
    return re.sub(r"(?ms)^(  spectap.json: \|-)\n.*?(?=^---|\Z)", r"\1 # dashboard.json\n", text)


class Rendered(unittest.TestCase):
    maxDiff = None

    def test_each_rendering_is_the_committed_one(self):
        named = set()
        for name, _, rendered in renderings():
            with self.subTest(name):
                path = SNAPSHOTS / f"{name}.yaml"
                named.add(path.name)
                text = without_files(charts.manifests(rendered))
                if os.environ.get("UPDATE_SNAPSHOTS"):
                    SNAPSHOTS.mkdir(exist_ok=True)
                    path.write_text(text)
                self.assertEqual(path.read_text(), text, f"{path.name}: UPDATE_SNAPSHOTS=1 make test-deploy rewrites it")
        self.assertEqual({path.name for path in SNAPSHOTS.iterdir()}, named, "snapshots of no case")

    def test_helm_finds_nothing(self):
        for name, values in cases.CHART.items():
            with self.subTest(name):
                self.assertEqual(charts.lint(values), [])
        for name, values in cases.EXAMPLE.items():
            with self.subTest(name):
                self.assertEqual(charts.lint(values, charts.example()), [])

    def test_helm_would_find_a_broken_value(self):
        self.assertTrue(charts.lint({"mode": "proxy"}))

    def test_the_oldest_and_the_newest_kubernetes_take_it(self):
        for name, values, rendered in renderings():
            documents = manifests.parse(charts.manifests(rendered))
            native = any(tap.get("restartPolicy") for _, _, tap in manifests.taps(documents))
            for version in (manifests.OLDEST_NATIVE if native else manifests.OLDEST, manifests.NEWEST):
                with self.subTest(name, version=version):
                    self.assertEqual(manifests.refusals(documents, version), "")

    def test_a_field_that_does_not_exist_would_be_refused(self):
        documents = manifests.parse(charts.manifests(charts.render(cases.CHART["gateway-everything"])))
        manifests.of_kind(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["readyProbe"] = {}
        self.assertIn("readyProbe", manifests.refusals(documents, manifests.NEWEST))
        documents = manifests.parse(charts.manifests(charts.render(cases.CHART["gateway-everything"])))
        manifests.of_kind(documents, "ServiceMonitor")["spec"]["endpoints"][0]["intervall"] = "1s"
        self.assertIn("intervall", manifests.refusals(documents, manifests.NEWEST))

    def test_a_native_sidecar_would_be_refused_before_1_28(self):
        documents = manifests.parse(charts.manifests(charts.render({}, charts.example())))
        self.assertIn("restartPolicy", manifests.refusals(documents, "1.27"))

    def test_the_yaml_of_a_reader_s_values_is_tidy(self):
        rules = "{extends: default, rules: {line-length: disable, document-start: disable}}"
        files = [charts.CHART / "values.yaml", charts.CHART / "Chart.yaml", *ROOT.glob("deploy/**/*.yaml"), *ROOT.glob("deploy/compose/**/*.yml")]
        self.assertGreater(len(files), 8)
        done = run(program("yamllint"), "--strict", "-d", rules, *files)
        self.assertEqual(done.stdout, "")

    def test_rules_and_dashboard_are_those_of_the_files(self):
        documents = manifests.parse(charts.manifests(charts.render(cases.CHART["gateway-everything"])))
        folder = charts.CHART / "files"
        groups = [yaml.safe_load((folder / name).read_text())["groups"] for name in ("rules.yml", "alerts.yml")]
        self.assertEqual(manifests.of_kind(documents, "PrometheusRule")["spec"]["groups"], groups[0] + groups[1])
        dashboard = manifests.of_kind(documents, "ConfigMap")["data"]["spectap.json"]
        self.assertEqual(json.loads(dashboard), json.loads((folder / "dashboard.json").read_text()))

    def test_prometheus_takes_the_rules_as_they_come_out_of_the_chart(self):
        documents = manifests.parse(charts.manifests(charts.render(cases.CHART["gateway-everything"])))
        groups = manifests.of_kind(documents, "PrometheusRule")["spec"]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(groups, file)
            file.flush()
            done = run(program("promtool"), "check", "rules", file.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_files_are_those_of_the_repository(self):
        # `make chart-files` copies them: a chart can't reach out of its folder.
        originals = {"rules.yml": "prometheus/rules.yml", "alerts.yml": "prometheus/alerts.yml", "dashboard.json": "grafana/spectap.json"}
        copies = charts.CHART / "files"
        self.assertEqual({path.name for path in copies.iterdir()}, set(originals))
        for copy, original in originals.items():
            original = ROOT / "deploy" / original
            with self.subTest(copy):
                if original.exists():
                    self.assertEqual((copies / copy).read_text(), original.read_text(), "make chart-files brings them together")


    def test_the_package_has_the_chart_whole_and_no_example(self):
        files = {str(path.relative_to(charts.CHART)) for path in charts.CHART.rglob("*") if path.is_file()}
        self.assertEqual(charts.packaged(), {name for name in files if not name.startswith("examples/")})


class Pods(unittest.TestCase):
    def test_every_tap_is_within_the_restricted_profile(self):
        seen = 0
        for name, _, rendered in renderings():
            documents = manifests.parse(charts.manifests(rendered))
            for pod_name, pod, tap in manifests.taps(documents):
                with self.subTest(name, pod=pod_name):
                    self.assertEqual(manifests.beyond_restricted(pod, tap), [])
                    self.assertIs(pod["automountServiceAccountToken"], False)
                    seen += 1
        self.assertGreater(seen, 8)

    def test_a_pod_may_take_as_long_to_end_as_the_tap_and_five_seconds(self):
        for name, values, rendered in renderings():
            documents = manifests.parse(charts.manifests(rendered))
            values = values.get("spectap", values)
            drain, grace = values.get("drainDelaySeconds", 5), values.get("graceSeconds", 25)
            for pod_name, pod, tap in manifests.taps(documents):
                if tap["args"][0] != "serve":
                    continue
                with self.subTest(name, pod=pod_name):
                    self.assertEqual(pod["terminationGracePeriodSeconds"], drain + grace + 5)
                    self.assertIn(f"--grace={grace}s", tap["args"])
                    # A native sidecar ends after the engine: the engine does the waiting.
                    native = tap.get("restartPolicy") == "Always"
                    self.assertIn(f"--drain-delay={0 if native else drain}s", tap["args"])
                    if name.startswith("vllm"):
                        engine = next(it for it in pod["containers"] if it["name"] == "vllm")
                        waits = int(engine["lifecycle"]["preStop"]["exec"]["command"][1])
                        self.assertEqual(waits, drain)
                        self.assertIn(f"--shutdown-timeout={grace}", engine["args"])

    def test_no_probe_asks_for_the_engine_unless_told(self):
        for name, values, rendered in renderings():
            for _, _, tap in manifests.taps(manifests.parse(charts.manifests(rendered))):
                if tap["args"][0] != "serve":
                    continue
                with self.subTest(name):
                    paths = {probe: tap[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
                    ready = values.get("readinessPath", "/livez")
                    self.assertEqual(paths, {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": ready})

    def test_every_port_that_something_names_exists(self):
        for name, _, rendered in renderings():
            documents = manifests.parse(charts.manifests(rendered))
            for _, pod in manifests.pods(documents):
                for container in manifests.containers(pod):
                    own = {port["name"] for port in container.get("ports", [])}
                    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                        if probe in container:
                            self.assertIn(container[probe]["httpGet"]["port"], own, f"{name}: {probe}")
            by_name = {port["name"] for _, pod in manifests.pods(documents) for it in pod["containers"] for port in it.get("ports", [])}
            for service in (it for it in documents if it["kind"] == "Service"):
                for port in service["spec"]["ports"]:
                    if isinstance(port["targetPort"], str):
                        # Of an ordinary container: before 1.32 a Service does not find a native sidecar's.
                        self.assertIn(port["targetPort"], by_name, f"{name}: {service['metadata']['name']}")

    def test_a_service_and_a_monitor_select_what_exists(self):
        rendered = manifests.parse(charts.manifests(charts.render(cases.CHART["gateway-everything"])))
        labels = manifests.of_kind(rendered, "Deployment")["spec"]["template"]["metadata"]["labels"]
        for name in ("tap", "tap-admin"):
            selector = manifests.of_kind(rendered, "Service", name)["spec"]["selector"]
            self.assertLessEqual(selector.items(), labels.items())
        wanted = manifests.of_kind(rendered, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
        matching = [it["metadata"]["name"] for it in rendered if it["kind"] == "Service" and wanted.items() <= it["metadata"]["labels"].items()]
        self.assertEqual(matching, ["tap-admin"])
        for name in ("gateway-plain", "sidecar"):
            monitor = manifests.of_kind(manifests.parse(charts.manifests(charts.render(cases.CHART[name]))), "PodMonitor")
            self.assertEqual(monitor["spec"]["podMetricsEndpoints"][0]["port"], "spectap-admin")

    def test_the_bypass_sends_clients_to_the_engine_and_leaves_the_taps_standing(self):
        documents = manifests.parse(charts.manifests(charts.render(cases.CHART["gateway-bypass"])))
        service = manifests.of_kind(documents, "Service", "demo-spectap")["spec"]
        self.assertEqual((service["selector"], service["ports"][0]["targetPort"]), (cases.ENGINE, 8000))
        self.assertEqual(manifests.of_kind(documents, "Deployment")["spec"]["replicas"], 2)

    def test_an_engine_that_speaks_tls_is_asked_by_tls_on_every_lane(self):
        values = {"upstream": {"service": "vllm", "scheme": "https"}, "lanes": [{"port": 8092, "upstreamPort": 8001}]}
        text = charts.manifests(charts.render(values))
        self.assertIn("--upstream=https://vllm.inference.svc:8000\n", text)
        self.assertIn("--lane=0.0.0.0:8092=https://vllm.inference.svc:8001\n", text)

    def test_without_switches_there_is_nothing_but_the_tap(self):
        kinds = sorted(it["kind"] for it in manifests.parse(charts.manifests(charts.render(cases.CHART["gateway"]))))
        self.assertEqual(kinds, ["Deployment", "Pod", "PodDisruptionBudget", "Service", "Service", "ServiceAccount"])
        bare = charts.render({"mode": "sidecar"})
        self.assertEqual(list(bare), ["spectap/templates/NOTES.txt"])
