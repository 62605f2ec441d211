"""The compose file: its parts fit one another. No registry of images is at hand, so that it is read and not run."""

import os
import re
import signal
import subprocess
import time
import unittest
import urllib.request
from pathlib import Path

import yaml

from ports import answer, free_ports
from programs import ROOT, program, run, spectap

FOLDER = ROOT / "deploy/compose"


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
        cls.prometheus = yaml.safe_load((FOLDER / "prometheus.yml").read_text())

    def mounts(self, service):
        """Where in the container -> what of the repository."""
        pairs = (it.split(":")[:2] for it in self.services[service]["volumes"])
        return {inside: (FOLDER / outside).resolve() for outside, inside in pairs}

    def listens(self, service, port="LISTEN"):
        """The port that a service of ours listens on: as told, else as the image says."""
        told = re.findall(r" --listen=\S+?:(\d+)", " ".join(self.services[service]["command"]))
        dockerfile = (ROOT / "deploy/docker/Dockerfile").read_text()
        (port,) = told or re.findall(rf"SPECTAP_{port}=0\.0\.0\.0:(\d+)", dockerfile)
        return int(port)

    def test_the_services_are_the_ones_that_are_told_of(self):
        self.assertEqual(set(self.services), {"engine", "tap", "clients", "prometheus", "grafana"})
        for service in self.services.values():
            self.assertLessEqual(set(service.get("depends_on", [])), set(self.services))
            self.assertRegex(service["image"], r":(?!latest$)[\w.]+$", "an image without a version")

    def test_ports_of_this_machine_are_for_this_machine_only_and_used_once(self):
        ports = [port for service in self.services.values() for port in service.get("ports", [])]
        self.assertTrue(all(port.startswith("127.0.0.1:") for port in ports), ports)
        outside = [port.split(":")[1] for port in ports]
        self.assertEqual(len(outside), len(set(outside)))

    def test_the_tap_goes_to_the_engine_and_the_clients_to_the_tap(self):
        (upstream,) = re.findall(r"--upstream=http://(\w+):(\d+)", " ".join(self.services["tap"]["command"]))
        self.assertEqual(upstream[0], "engine")
        self.assertEqual(int(upstream[1]), self.listens("engine"))
        (asked,) = set(re.findall(r"http://(\w+):(\d+)/v1/chat/completions", self.services["clients"]["command"][2]))
        self.assertEqual(asked[0], "tap")
        self.assertEqual(int(asked[1]), self.listens("tap"))
        (model,) = re.findall(r'"model":"([^"]+)"', self.services["clients"]["command"][2])
        self.assertIn(f"[default: {model}]", run(spectap(), "simulate", "--help").stdout)

    def test_what_runs_ours_is_built_here(self):
        for name in ("engine", "tap"):
            build = self.services[name]["build"]
            context = (FOLDER / build["context"]).resolve()
            self.assertEqual(context, ROOT)
            self.assertTrue((context / build["dockerfile"]).exists())
            self.assertTrue(self.services[name]["read_only"])

    def test_prometheus_scrapes_what_listens(self):
        done = run(program("promtool"), "check", "config", "--syntax-only", FOLDER / "prometheus.yml")
        self.assertEqual(done.returncode, 0, done.stderr)
        jobs = {it["job_name"]: it["static_configs"][0]["targets"] for it in self.prometheus["scrape_configs"]}
        admin, engine = self.listens("tap", "ADMIN_LISTEN"), self.listens("engine")
        self.assertEqual(jobs, {"spectap": [f"tap:{admin}"], "engine": [f"engine:{engine}"]})

    def test_prometheus_finds_its_rules_where_they_are_mounted(self):
        mounts = self.mounts("prometheus")
        (config,) = re.findall(r"--config\.file=(\S+)", " ".join(self.services["prometheus"]["command"]))
        self.assertEqual(mounts[config], FOLDER / "prometheus.yml")
        for rules in self.prometheus["rule_files"]:
            folder, name = rules.split("/")
            source = mounts[f"{Path(config).parent}/{folder}"]
            self.assertEqual(source, ROOT / "deploy/prometheus")
            if source.exists():
                self.assertTrue((source / name).exists(), name)

    def test_grafana_finds_its_dashboard_and_its_source(self):
        mounts = self.mounts("grafana")
        provisioning = mounts["/etc/grafana/provisioning"]
        (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
        self.assertEqual(source["url"], "http://prometheus:9090")
        self.assertTrue(source["isDefault"])
        (provider,) = yaml.safe_load((provisioning / "dashboards/spectap.yml").read_text())["providers"]
        dashboards = mounts[provider["options"]["path"]]
        self.assertEqual(dashboards, ROOT / "deploy/grafana")
        home = Path(self.services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
        self.assertEqual(str(home.parent), provider["options"]["path"])
        if dashboards.exists():
            self.assertTrue((dashboards / home.name).exists())

    def test_its_commands_give_numbers_of_both_clients(self):
        # Run on this machine, each name of a service being this machine's.
        engine, data, admin = free_ports(3)

        def here(words):
            places = {"0.0.0.0:8000": f"127.0.0.1:{engine}", "engine:8000": f"127.0.0.1:{engine}", "tap:8090": f"127.0.0.1:{data}"}
            for name, place in places.items():
                words = [word.replace(name, place) for word in words]
            # Compose takes $ for its own; $$ is one.
            return [word.replace("$$", "$") for word in words]

        addresses = {"SPECTAP_LISTEN": f"127.0.0.1:{data}", "SPECTAP_ADMIN_LISTEN": f"127.0.0.1:{admin}"}
        program("curl")
        for name, before in (("engine", [spectap()]), ("tap", [spectap()]), ("clients", [])):
            self.start([*before, *here(self.services[name]["command"])], {**os.environ, **addresses})
        self.assertEqual(answer(f"http://127.0.0.1:{admin}/livez"), 200)
        deadline = time.monotonic() + 60
        tags = set()
        while tags != {"math", "chat"}:
            self.assertLess(time.monotonic(), deadline, f"numbers of {tags} only")
            time.sleep(0.2)
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=5) as response:
                said = response.read().decode()
            tags = set(re.findall(r'(?m)^spectap_spec_decode_num_drafts_total\{[^}]*tag="(\w+)"[^}]*\} [1-9]', said))

    def start(self, command, environment):
        """Starts a command that ends, with all that it started, when the test does."""
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

        def end():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)

        self.addCleanup(end)
