"""Each alert is seen firing in a real Prometheus: the same expressions, with every time but the past of a day shortened to a
thirtieth.

    alerts_live.py --spectap BINARY --work FOLDER
"""

import argparse
import contextlib
import json
import pathlib
import re
import threading
import time

import yaml

from promql import ALERTS, RULES
from servers import Prometheus, Server, Tap, engine, free_port, until
from traffic import FaultyEngine, chat, send

SHORTER = 30
UNITS = {"s": 1, "m": 60}
# How long everything is well: longer than the shortened offset behind which the past begins.
WELL = 75
GOOD, POOR = "0.9,0.9,0.8,0.8", "0.3,0.2,0.2,0.2"


def shorter(text):
    """Every duration of seconds and minutes, in an expression or alone, to a thirtieth."""
    change = lambda found: f"{max(1, int(found[1]) * UNITS[found[2]] // SHORTER)}s"
    return re.sub(r"\b(\d+)([sm])\b", change, text)


def shortened(source, target):
    rules = yaml.safe_load(source.read_text())
    for group in rules["groups"]:
        group["interval"] = shorter(group["interval"])
        for rule in group["rules"]:
            # `rate5m` is a name.
            rule["expr"] = re.sub(r"(\[|offset )(\d+[sm])", lambda found: found[1] + shorter(found[2]), rule["expr"])
            if "for" in rule:
                rule["for"] = shorter(rule["for"])
    target.write_text(json.dumps(rules))
    return target


class Traffic:
    """A request every fifth of a second to each tap, until the block ends."""

    def __init__(self, wanted):
        self.wanted, self.over = wanted, threading.Event()

    def __enter__(self):
        self.threads = [threading.Thread(target=self.run, args=one) for one in self.wanted]
        for thread in self.threads:
            thread.start()
        return self

    def run(self, address, body):
        while not self.over.wait(0.2):
            send(address, body)

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectap", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    binary, folder = arguments.spectap, arguments.work
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        quick = ["--step-time=0", "--prefill-time=0"]
        ports = {name: free_port() for name in ("falls", "stops", "goes", "silent")}

        def start(name, acceptance, flags=()):
            """The engine of a tap, where the tap looks for it."""
            command = [binary, "simulate", "--engine=vllm", f"--listen=127.0.0.1:{ports[name]}", f"--model={name}={acceptance}"]
            log = folder / f"{name}-{acceptance[:3]}-engine.log"
            server = stack.enter_context(Server([*command, *quick, *flags], log))
            server.said(r"( on http://)")
            return server

        engines = {name: start(name, GOOD) for name in ("falls", "stops", "goes")}
        engines["silent"] = start("silent", GOOD, ["--level=none"])
        faulty = stack.enter_context(FaultyEngine()).address
        taps = {name: stack.enter_context(Tap(binary, folder, name, f"127.0.0.1:{port}")) for name, port in ports.items()}
        taps["contradicts"] = stack.enter_context(Tap(binary, folder, "contradicts", faulty))
        taps["unreadable"] = stack.enter_context(Tap(binary, folder, "unreadable", faulty))
        # It shares its engine, of whose work it has no part.
        ends = (f"127.0.0.1:{ports['falls']}", ["--no-scrape"])
        taps["ends"] = stack.enter_context(Tap(binary, folder, "ends", *ends))
        targets = [(tap.admin, {"namespace": "live", "pod": name}) for name, tap in taps.items()]
        rules = [shortened(RULES, folder / "rules.yml"), shortened(ALERTS, folder / "alerts.yml")]
        prometheus = stack.enter_context(Prometheus(folder, {"spectap": targets}, rules))
        wanted = [(taps[name].data, chat(name, 96)) for name in ports]
        wanted += [(taps["contradicts"].data, chat("identity_sum", 8)), (taps["unreadable"].data, chat("not_json", 8))]
        stack.enter_context(Traffic(wanted))

        def firing():
            alerts = prometheus.ask("/api/v1/alerts")["alerts"]
            named = lambda labels: labels.get("pod") or labels.get("model_name")
            return {(one["labels"]["alertname"], named(one["labels"])) for one in alerts if one["state"] == "firing"}

        early = {
            ("SpectapPayloadsContradictory", "faulty"),
            ("SpectapNotObserving", "unreadable"),
            ("SpectapRecordShareLow", "silent"),
            ("SpectapCoverageLow", "silent"),
        }
        begun = time.monotonic()
        try:
            until("what is wrong from the start fires", lambda: early <= firing(), WELL)
        except TimeoutError as late:
            raise TimeoutError(f"{late}: still missing {early - firing()}") from None
        until("a past of good traffic", lambda: time.monotonic() - begun > WELL, WELL + 10)
        wrong = {alert for alert in firing() if alert[1] in (*engines, "ends") and alert not in early}
        assert not wrong, f"fires while all is well: {wrong}"

        for name in ("falls", "stops", "goes"):
            engines[name].stop()
        start("falls", POOR)
        start("stops", "none")
        taps["ends"].stop()
        late = {
            ("SpectapAcceptanceCollapsed", "falls"),
            ("SpectapSpeculationStopped", "stops"),
            ("SpectapEngineUnreachable", "goes"),
            ("SpectapDown", "ends"),
        }
        seen = set()

        def all_fired():
            seen.update(firing())
            return late <= seen

        until("what went wrong fires", all_fired, 120)
        names = {rule["alert"] for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]}
        assert {name for name, _ in early | late} == names, "an alert without a scene"
        for name, of in sorted(early | late):
            print(f"{name} fired for {of}")


if __name__ == "__main__":
    main()
