"""The image: linted, built of a ready binary, and run as it will be: not as root, and on a root that it can't write."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
import unittest
from pathlib import Path

import charts
import manifests
from ports import answer, free_ports
from programs import ROOT, SPECTAP, missing, program, run, spectap

FOLDER = ROOT / "deploy/docker"


def lines_of_the_image(name):
    """What the last stage is made of, but for where its binary comes from."""
    text = (FOLDER / name).read_text()
    return [line for line in text[text.index("FROM scratch"):].splitlines() if not line.startswith("COPY")]


class Dockerfiles(unittest.TestCase):
    def test_hadolint_finds_nothing(self):
        for file in sorted(FOLDER.iterdir()):
            with self.subTest(file.name):
                done = run(program("hadolint"), "--failure-threshold", "style", file)
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_hadolint_would_find_something(self):
        done = run(program("hadolint"), "-", input="FROM debian\nRUN cd /tmp && apt-get install curl\n")
        self.assertNotEqual(done.returncode, 0)

    def test_both_files_make_the_same_image(self):
        self.assertEqual(lines_of_the_image("Dockerfile"), lines_of_the_image("Dockerfile.binary"))

    def test_the_versions_are_those_of_the_package(self):
        package = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
        dockerfile = (FOLDER / "Dockerfile").read_text()
        self.assertIn(f"FROM rust:{package['rust-version']}-", dockerfile)
        self.assertIn(f"ARG VERSION={package['version']}\n", dockerfile)
        chart = (charts.CHART / "Chart.yaml").read_text()
        self.assertIn(f'appVersion: "{package["version"]}"', chart)
        for file in (ROOT / "deploy").rglob("*.yaml"):
            for tag in re.findall(r"ghcr\.io/spectap/spectap:(\S+)", file.read_text()):
                self.assertEqual(tag, package["version"], file)


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="spectap-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        # Storage of its own, so that nothing is left on the machine.
        storage = ["--storage-driver=vfs", "--root", cls.folder / "root", "--runroot", cls.folder / "run"]
        cls.buildah = [program("buildah"), *storage]
        context = cls.folder / "context"
        context.mkdir()
        shutil.copy(spectap(), context / "spectap")
        cls.succeed("bud", "--isolation=chroot", "-t", "localhost/spectap:test", "-f", FOLDER / "Dockerfile.binary", context)
        (context / "spectap").unlink()
        cls.container = cls.succeed("from", "localhost/spectap:test").strip()
        cls.addClassCleanup(cls.succeed, "rm", cls.container)
        cls.config = json.loads(cls.succeed("inspect", "--type=image", "localhost/spectap:test"))["OCIv1"]["config"]

    @classmethod
    def succeed(cls, *command):
        done = run(*cls.buildah, *command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_the_binary_needs_nothing_beside_it(self):
        self.assertIn("statically linked", run("ldd", SPECTAP).stdout + run("ldd", SPECTAP).stderr)

    def test_it_says_who_it_is(self):
        self.assertEqual(self.config["User"], "65532:65532")
        self.assertEqual((self.config["Entrypoint"], self.config["Cmd"]), (["/spectap"], ["serve"]))
        self.assertEqual(set(self.config["ExposedPorts"]), {"8090/tcp", "8091/tcp"})
        self.assertIn("SPECTAP_LISTEN=0.0.0.0:8090", self.config["Env"])
        self.assertIn("SPECTAP_ADMIN_LISTEN=0.0.0.0:8091", self.config["Env"])
        labels = {name.rpartition(".")[2] for name in self.config["Labels"] if name.startswith("org.opencontainers.image.")}
        self.assertEqual(labels, {"title", "description", "source", "licenses", "version", "revision"})

    def test_the_context_of_the_build_from_source_has_what_cargo_wants_and_no_more(self):
        (self.folder / "Context").write_text("FROM scratch\nCOPY . /src\n")
        self.succeed("bud", "--isolation=chroot", "-t", "localhost/context:test", "-f", self.folder / "Context", ROOT)
        container = self.succeed("from", "localhost/context:test").strip()
        context = Path(self.succeed("mount", container).strip(), "src")
        self.assertEqual({it.name for it in context.iterdir()}, {"Cargo.toml", "Cargo.lock", "build.rs", "src", "benches"})
        # Reads the manifest as a build does, and compiles nothing.
        host = re.search(r"host: (\S+)", run("rustc", "-vV").stdout)[1]
        done = run("cargo", "fetch", "--locked", "--offline", "--target", host, cwd=context)
        self.assertEqual(done.returncode, 0, done.stderr)
        for source in (context / "src").rglob("*.rs"):
            if source.name == "tests.rs" or "tests" in source.relative_to(context).parts:
                continue
            # From a file's tests on, nothing is compiled into the program.
            code = source.read_text().split("#[cfg(test)]\nmod tests {")[0]
            for name in re.findall(r"include_(?:str|bytes)!\(\s*\"([^\"]+)\"", code):
                self.assertTrue((source.parent / name).resolve().exists(), f"{source} includes {name}")
        self.succeed("rm", container)

    def test_it_serves_as_the_chart_starts_it_not_as_root_and_on_a_root_it_cannot_write(self):
        data, admin, engine = free_ports(3)
        simulated = subprocess.Popen([spectap(), "simulate", f"--listen=127.0.0.1:{engine}", "--step-time=0"], stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (simulated.terminate(), simulated.wait(timeout=30)))
        values = {"upstream": {"service": "vllm", "port": engine}, "dataPort": data, "adminPort": admin, "drainDelaySeconds": 0}
        documents = manifests.parse(charts.manifests(charts.render(values)))
        tap = next(tap for _, _, tap in manifests.taps(documents) if tap["args"][0] == "serve")
        # No cluster is here to resolve the Service's name.
        args = [arg.replace("vllm.inference.svc", "127.0.0.1") for arg in tap["args"]]
        mount = Path(self.succeed("mount", self.container).strip())
        self.assertEqual([path.name for path in mount.iterdir() if path.name not in {"dev", "etc", "proc", "run", "sys", "tmp"}], ["spectap"])
        running = subprocess.Popen(
            [*map(str, self.buildah), "run", "--isolation=chroot", self.container, "--", *self.config["Entrypoint"], *args],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            live = tap["livenessProbe"]["httpGet"]["path"]
            self.assertEqual(answer(f"http://127.0.0.1:{admin}{live}"), 200)
            self.assertEqual(answer(f"http://127.0.0.1:{engine}/v1/models"), 200)
            self.assertEqual(answer(f"http://127.0.0.1:{data}/v1/models"), 200)
            process = self.tap_of(running.pid)
            status = Path(f"/proc/{process}/status").read_text()
            self.assertRegex(status, r"(?m)^Uid:\t65532\t65532\t65532\t65532$")
            self.assertRegex(status, r"(?m)^Gid:\t65532\t65532\t65532\t65532$")
            # It holds nothing open for writing but sockets and pipes, and could not write its root: that is root's.
            files = [os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir()]
            self.assertEqual([it for it in files if it.startswith("/") and not it.startswith("/dev/")], [])
            root = os.stat(f"/proc/{process}/root")
            self.assertEqual((root.st_uid, root.st_mode & 0o022), (0, 0))
            # Off loopback and without a token the admin port shows no more than numbers and probes.
            self.assertEqual(answer(f"http://127.0.0.1:{admin}/api/v1/summary"), 403)
        finally:
            for process in taps_below(running.pid):
                os.kill(process, signal.SIGTERM)
            said = running.communicate(timeout=60)[1]
        self.assertEqual(running.returncode, 0, said)

    def test_it_serves_from_a_root_that_is_mounted_read_only(self):
        if os.geteuid() != 0:
            missing("root, to mount something read-only,")
        mount = self.succeed("mount", self.container).strip()
        data, admin = free_ports(2)
        # A file system view of its own, which ends with the process.
        enter = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && root=$1 && shift && exec chroot --userspec=65532:65532 "$root" "$@"'
        args = ["/spectap", "serve", f"--listen=127.0.0.1:{data}", f"--admin-listen=127.0.0.1:{admin}", "--upstream=http://127.0.0.1:9"]
        running = subprocess.Popen(["unshare", "--mount", "sh", "-c", enter, "sh", mount, *args], stderr=subprocess.PIPE, text=True)
        try:
            self.assertEqual(answer(f"http://127.0.0.1:{admin}/livez"), 200)
            root = next(line.split() for line in Path(f"/proc/{running.pid}/mountinfo").read_text().splitlines() if line.split()[4] == "/")
            self.assertIn("ro", root[5].split(","))
        finally:
            running.terminate()
            said = running.communicate(timeout=60)[1]
        self.assertEqual(running.returncode, 0, said)

    def tap_of(self, pid):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for process in taps_below(pid):
                return process
        self.fail("the tap runs nowhere below buildah")


def taps_below(pid):
    """The processes of the image's program that this process started, or those that it started."""
    try:
        children = [int(it) for task in Path(f"/proc/{pid}/task").iterdir() for it in (task / "children").read_text().split()]
        for child in children:
            if os.readlink(f"/proc/{child}/exe").endswith("/spectap"):
                yield child
            yield from taps_below(child)
    except OSError:
        # It has just ended.
        return
