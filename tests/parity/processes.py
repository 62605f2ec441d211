"""Starting and ending what a run needs: the made-up engine, spectap before it, and AIPerf as their client."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import tokenizer

HERE = pathlib.Path(__file__).resolve().parent
DEADLINE = 30


class Server:
    """A process that says on which port it listens, and ends on SIGTERM."""

    def __init__(self, command, log):
        self.command, self.log = [str(word) for word in command], log

    def __enter__(self):
        # Settings of the machine that runs this must not reach spectap.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPECTAP_")}
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        return self

    def port_after(self, mark):
        """The port in the first line of the log that has one after this mark."""
        deadline = time.monotonic() + DEADLINE
        while True:
            text = self.log.read_text()
            if found := re.search(mark + r"\S*?(\d+)\b(?!\.)", text):
                return int(found[1])
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.command[0]} did not start; {self.log} says:\n{text}")
            time.sleep(0.02)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.code = self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"{self.command[0]} did not end within {DEADLINE} s of SIGTERM") from None


def engine(folder, arguments):
    """The made-up engine, on a free port."""
    log = ["--log", folder / "payload-log.jsonl"]
    return Server([sys.executable, HERE / "engine.py", *log, *arguments], folder / "engine.log")


def spectap(folder, binary, upstream_port):
    """`spectap serve` on free ports."""
    addresses = ["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]
    return Server([binary, "serve", f"--upstream=http://127.0.0.1:{upstream_port}", *addresses], folder / "spectap.log")


SYNTHETIC = ["--synthetic-input-tokens-mean=32", "--output-tokens-mean=128"]


def aiperf(folder, home, port, arguments, prompts=SYNTHETIC):
    """One `aiperf profile` to its end."""
    tokenizer.make(home)
    command = [
        pathlib.Path(sys.executable).parent / "aiperf",
        "profile",
        "--model=made-up",
        f"--tokenizer={tokenizer.NAME}",
        f"--url=http://127.0.0.1:{port}",
        "--random-seed=7",
        "--use-server-token-count",
        "--export-level=records",
        "--ui=none",
        "--no-gpu-telemetry",
        *prompts,
        f"--artifact-dir={folder}",
        *arguments,
    ]
    # The width is that of the console text; nothing may be asked of a hub.
    settings = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "COLUMNS": "120"}
    # AIPerf leaves files where temporary ones go. The place has a short name, since there are sockets in it, too.
    with open(folder / "aiperf.log", "w") as log, tempfile.TemporaryDirectory(prefix="parity-") as temporary:
        settings["TMPDIR"] = temporary
        done = subprocess.run(
            command, env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT, timeout=300, check=False
        )
    if done.returncode != 0:
        tail = (folder / "aiperf.log").read_text()[-3000:]
        raise RuntimeError(f"aiperf ended with code {done.returncode}:\n{tail}")


def report(binary, admin_port, *arguments):
    """What `spectap report` prints, its ends of lines as they are."""
    command = [str(binary), "report", f"--from=http://127.0.0.1:{admin_port}", *arguments]
    return subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE).stdout.decode()


def ask(port, path, body=None):
    """What the port answers, which is JSON or nothing; a body makes it a POST."""
    headers = {"Content-Type": "application/json"} if body else {}
    data = body and json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        return json.loads(answer.read() or "null")


def begin_run(name, engine, engine_port, admin_port, is_over):
    """Begins a run once the engine holds the last request of the warm-up, and then lets that one go."""
    while "holding request" not in engine.log.read_text():
        if is_over():
            raise RuntimeError("aiperf ended before the engine held a request")
        time.sleep(0.02)
    ask(admin_port, "/api/v1/runs", {"name": name})
    ask(engine_port, "/release", {"let": "go"})


def settled(admin_port, exchanges):
    """All observations, once there are this many: an exchange is counted just after its client has its last byte."""
    deadline = time.monotonic() + DEADLINE
    while True:
        page = ask(admin_port, "/api/v1/requests?limit=1000")
        if len(page["requests"]) >= exchanges or time.monotonic() > deadline:
            return page["requests"]
        time.sleep(0.02)
