"""Starting and ending the two servers: vLLM (by `vllm/run-vllm-cpu.sh`) and spectap."""

import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

RUN_VLLM = pathlib.Path(__file__).resolve().parent / "vllm" / "run-vllm-cpu.sh"
VLLM_FLAGS = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]


def free_port():
    """A port that nothing listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Vllm:
    """A real vLLM on the CPU with one kind of drafter and one level of numbers."""

    def __init__(self, folder, drafter, level):
        self.folder, self.port = folder, free_port()
        self.environment = {
            **os.environ,
            "SPECTAP_VLLM_PORT": str(self.port),
            "SPECTAP_VLLM_SPEC": drafter,
            "SPECTAP_VLLM_LEVEL": level,
        }

    def __enter__(self):
        command = ["bash", str(RUN_VLLM), str(self.folder), "start", *VLLM_FLAGS]
        subprocess.run(command, env=self.environment, check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["bash", str(RUN_VLLM), str(self.folder), "stop"], env=self.environment, check=True)


class Spectap:
    """`spectap serve` in front of an engine."""

    def __init__(self, binary, upstream_port, log):
        self.port, self.admin_port = free_port(), free_port()
        self.command = [
            str(binary),
            "serve",
            f"--upstream=http://127.0.0.1:{upstream_port}",
            f"--listen=127.0.0.1:{self.port}",
            f"--admin-listen=127.0.0.1:{self.admin_port}",
        ]
        self.log = log

    def __enter__(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 10
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError(f"spectap did not become ready; {self.log} says:\n{self.log.read_text()}")
            time.sleep(0.02)
        return self

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.code = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError("spectap did not end within 30 s of SIGTERM") from None
