"""The pages: every value of the chart is documented with its default, and every command and file of docs/deployment.md is one
that the chart, the component and the repository take."""

import json
import re
import shlex
import unittest

import yaml

import charts
import manifests
from programs import ROOT

PAGE = ROOT / "docs/deployment.md"
README = charts.CHART / "README.md"
VALUES = yaml.safe_load((charts.CHART / "values.yaml").read_text())
SCHEMA = json.loads((charts.CHART / "values.schema.json").read_text())
# Maps whose keys are the user's own.
OPEN = {"dashboard.labels"}


def leaves(prefix, value):
    if isinstance(value, dict) and value and prefix not in OPEN:
        for key, child in value.items():
            yield from leaves(f"{prefix}.{key}" if prefix else key, child)
    else:
        yield prefix, value


def nested(name, value):
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


def merged(base, more):
    """Two trees of values, the second winning."""
    if not (isinstance(base, dict) and isinstance(more, dict)):
        return more
    return {**base, **{key: merged(base[key], value) if key in base else value for key, value in more.items()}}


def commands():
    """The commands of both pages, continuation lines joined."""
    for page in (PAGE, README):
        for line in page.read_text().replace("\\\n", " ").splitlines():
            if re.match(r" {4,}(helm|kubectl|docker) ", line):
                yield shlex.split(line, comments=True)


def settings(words):
    """The values that --set gives, as Helm reads them."""
    values = {}
    for flag, setting in zip(words, words[1:]):
        if flag == "--set":
            name, _, value = setting.partition("=")
            values = merged(values, nested(name, {"true": True, "false": False}.get(value, value)))
    return values


class Values(unittest.TestCase):
    def test_the_table_has_every_value_with_its_default_and_no_other(self):
        rows = re.findall(r"(?m)^\| `([\w.]+)` \| `([^`]*)` \| (.+) \|$", README.read_text())
        documented = {name: json.loads(default) for name, default, _ in rows}
        self.assertEqual(documented, dict(leaves("", VALUES)))
        self.assertTrue(all(len(meaning) >= 8 for _, _, meaning in rows))

    def test_the_schema_has_every_value_and_no_other(self):
        def named(prefix, node):
            for key, child in node.get("properties", {}).items():
                name = f"{prefix}.{key}" if prefix else key
                if child.get("properties"):
                    yield from named(name, child)
                else:
                    yield name

        # What Helm adds, and what a container's resources may have beside the defaults.
        defaults = {"global", "resources.requests", "resources.limits", "resources.claims"}
        expected = {name for name, _ in leaves("", VALUES) if not name.startswith("resources.")}
        self.assertEqual(set(named("", SCHEMA)) - defaults, expected)

    def test_every_template_for_other_charts_is_in_the_table(self):
        templates = "".join(path.read_text() for path in charts.CHART.glob("templates/_*.tpl"))
        offered = set(re.findall(r'define "(spectap\.sidecar\.\w+)"', templates)) - {"spectap.sidecar.check"}
        offered |= {"spectap.terminationGracePeriodSeconds", "spectap.notes"}
        self.assertEqual(set(re.findall(r"(?m)^\| `(spectap\.[\w.]+)` \|", README.read_text())), offered)
        for name in re.findall(r'include "([\w.]+)"', PAGE.read_text()):
            self.assertIn(f'define "{name}"', templates)


class Commands(unittest.TestCase):
    def test_every_helm_command_renders(self):
        installed = {}
        checked = 0
        for words in commands():
            if words[0] != "helm" or "helm/spectap" not in words:
                continue
            values = settings(words)
            if words[1] == "install":
                installed = values
            else:
                self.assertIn("--reuse-values", words)
                # A gateway is what upgrades of the page are of.
                values = merged(installed if installed.get("upstream", {}).get("service") else GATEWAY, values)
            with self.subTest(" ".join(words)):
                self.assertTrue(charts.render(values))
                checked += 1
        self.assertGreater(checked, 6)

    def test_every_file_of_a_command_exists(self):
        files = [it for words in commands() for it in words if re.match(r"(deploy|helm|docs)/", it)]
        files += re.findall(r"`((?:deploy|helm)/[\w./-]+)`", PAGE.read_text())
        self.assertGreater(len(files), 10)
        for name in files:
            self.assertTrue((ROOT / name).exists(), name)

    def test_what_patches_a_service_goes_through_the_tap_or_past_it(self):
        container = yaml.safe_load((ROOT / "deploy/kubernetes/sidecar.yaml").read_text())
        (tap,) = container["spec"]["template"]["spec"]["initContainers"]
        (through,) = [port["containerPort"] for port in tap["ports"] if port["name"] == "spectap"]
        (past,) = [int(it["value"].rpartition(":")[2]) for it in tap["env"] if it["name"] == "SPECTAP_UPSTREAM"]
        targets = [json.loads(word[2:].lstrip("=")) for words in commands() if "service" in words for word in words if word.startswith("-p")]
        self.assertEqual([[it["value"] for it in target] for target in targets], [[past], [through]])
        self.assertEqual({it["path"] for target in targets for it in target}, {"/spec/ports/0/targetPort"})

    def test_the_production_stack_s_names_are_its_own(self):
        stack = manifests.parse((ROOT / "tests/deploy/fixtures/production-stack.yaml").read_text())
        names = {it["metadata"]["name"] for it in stack if it["kind"] == "Deployment"}
        patched = [words[words.index("deployment") + 1] for words in commands() if "patch" in words and "deployment" in words]
        self.assertIn("vllm-opt125m-deployment-vllm", names & set(patched))


class Snippets(unittest.TestCase):
    def blocks(self, name):
        return re.findall(rf"```yaml\n# {re.escape(name)}\n(.*?)```", PAGE.read_text(), re.S)

    def test_every_set_of_values_renders_beside_vllm(self):
        shown = self.blocks("values.yaml")
        self.assertEqual(len(shown), 2)
        for text in shown:
            self.assertIn("Deployment", charts.manifests(charts.render(yaml.safe_load(text), charts.example())))

    def test_the_dependency_and_the_image_are_of_this_version(self):
        (chart,) = self.blocks("Chart.yaml")
        (dependency,) = yaml.safe_load(chart)["dependencies"]
        own = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())
        self.assertEqual((dependency["name"], dependency["version"]), (own["name"], own["version"]))
        (kustomization,) = self.blocks("kustomization.yaml")
        shown = yaml.safe_load(kustomization)
        self.assertIn(f"//deploy/kustomize/sidecar?ref=v{own['appVersion']}", shown["components"][0])
        self.assertEqual(shown["images"][0]["name"], VALUES["image"]["repository"])

    def test_the_page_says_the_versions_that_are_tested(self):
        said = PAGE.read_text()
        for version in (manifests.OLDEST, manifests.OLDEST_NATIVE, manifests.NEWEST):
            self.assertIn(version, said)
        own = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())
        self.assertEqual(own["kubeVersion"], f">={manifests.OLDEST}.0-0")


GATEWAY = {"upstream": {"service": "vllm", "podSelector": {"app": "vllm"}}}
