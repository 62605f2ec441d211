"""Starting and ending what a run needs: simulated engines, taps before them, and a Prometheus that scrapes them."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request

DEADLINE = 60


def until(what, is_so, deadline=DEADLINE):
    """Waits until something gives a truth, and gives that."""
    end = time.monotonic() + deadline
    while not (found := is_so()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {deadline} s")
        time.sleep(0.05)
    return found


class Server:
    """A process that is ended with the block that it was started for."""

    def __init__(self, command, log):
        # Settings of the machine that runs this must not reach spectap.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPECTAP_")}
        self.log = log
        with open(log, "w") as output:
            words = [str(word) for word in command]
            self.process = subprocess.Popen(words, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def said(self, pattern):
        """What a pattern finds in the log, once it does."""

        def look():
            found = re.search(pattern, self.log.read_text())
            if not found and self.process.poll() is not None:
                raise RuntimeError(f"{self.log} ends with:\n{self.log.read_text()}")
            return found

        return until(f"{pattern} in {self.log}", look)[1]


def engine(binary, folder, name, models, flags=()):
    """A simulated vLLM; `models` is what `--model` takes. Gives it with its address."""
    command = [binary, "simulate", "--engine=vllm", "--listen=127.0.0.1:0", *[f"--model={model}" for model in models]]
    server = Server([*command, *flags], folder / f"{name}-engine.log")
    server.address = server.said(r" on http://([\d.]+:\d+)")
    return server


class Tap(Server):
    """`spectap serve` before an engine, with a records file."""

    def __init__(self, binary, folder, name, upstream, flags=()):
        self.name, self.records = name, folder / f"{name}.jsonl"
        # What an earlier run left would be appended to.
        self.records.unlink(missing_ok=True)
        command = [binary, "serve", f"--upstream=http://{upstream}", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]
        super().__init__([*command, f"--records={self.records}", *flags], folder / f"{name}.log")
        self.data = self.said(r"http://([\d.]+:\d+) passes to")
        self.admin = self.said(r"numbers on http://([\d.]+:\d+)")

    def get(self, path, accept="*/*"):
        request = urllib.request.Request(f"http://{self.admin}{path}", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            return answer.read().decode()

    def json(self, path):
        return json.loads(self.get(path))

    def observations(self):
        """What its records file holds so far."""
        lines = self.records.read_text().splitlines() if self.records.exists() else []
        found = [json.loads(line) for line in lines]
        return [observation for observation in found if "manifest" not in observation]


def free_port():
    """A port that nothing listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus(Server):
    """A Prometheus with rule files and jobs (`{name: [(address, labels), …]}`) that it scrapes every second."""

    def __init__(self, folder, jobs, rule_files=(), interval="1s", flags=()):
        config = {
            "global": {"scrape_interval": interval, "evaluation_interval": interval},
            # A relative name would be looked for beside the configuration, and a file that is not there is no error.
            "rule_files": [str(file.resolve()) for file in rule_files],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [at], "labels": labels} for at, labels in targets]}
                for job, targets in jobs.items()
            ],
        }
        # Targets of an earlier run would still be up.
        shutil.rmtree(folder / "prometheus-data", ignore_errors=True)
        # JSON is YAML.
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self.url = f"http://127.0.0.1:{free_port()}"
        command = [
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'prometheus-data'}",
            f"--web.listen-address={self.url[7:]}",
            "--enable-feature=exemplar-storage",
            "--log.level=warn",
            *flags,
        ]
        super().__init__(command, folder / "prometheus.log")
        until("Prometheus answers", lambda: self.ask("/-/ready", raw=True))

    def ask(self, path, raw=False, **parameters):
        """What its API gives; nothing while it does not listen yet."""
        url = f"{self.url}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            if raw:
                return None
            raise RuntimeError(f"{parameters}: {error.read().decode()}") from None
        except OSError:
            if self.process.poll() is not None:
                raise RuntimeError(f"Prometheus ended: {self.log.read_text()}") from None
            return None
        return text if raw else json.loads(text)["data"]

    def query(self, expression, at=None):
        """The value of each series of an instant query, by its labels (a frozenset of pairs)."""
        moment = {} if at is None else {"time": f"{at:.3f}"}
        found = self.ask("/api/v1/query", query=expression, **moment)
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in found["result"]}

    def value(self, expression, at=None):
        """The one value of a query; nothing where it has none."""
        found = list(self.query(expression, at).values())
        if len(found) > 1:
            raise RuntimeError(f"{expression} has {len(found)} series")
        return found[0] if found else None

    def range(self, expression, start, end, step=1):
        """Points (time, value) of each series of a range query."""
        found = self.ask("/api/v1/query_range", query=expression, start=start, end=end, step=step)
        return {
            frozenset(one["metric"].items()): [(float(at), float(value)) for at, value in one["values"]]
            for one in found["result"]
        }
