"""What taps cost: the series of one, what a scrape of it costs, and what many of them cost a Prometheus on this machine.

    scale.py --spectap BINARY --work FOLDER [--taps 100,300,1000] [--seconds 60]

Prints the tables of docs/scale.md. What things cost is CPU time, so that it hardly depends on what else runs.
"""

import argparse
import contextlib
import gzip
import json
import pathlib
import re
import signal
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "prometheus"))

from pages import Pages
from promql import ALERTS, RULES, dashboard, substituted, targets
from servers import Prometheus, Tap, engine, until
from traffic import chat, send_all

INTERVAL = 15
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
# Name, models and tags.
SHAPES = [("1 model", 1, 0), ("1 model, 4 tags", 1, 4), ("3 models, 10 tags", 3, 10)]
USUAL = "1 model, 4 tags"


def page_of(binary, folder, models, tags):
    """The page of a tap after traffic, and what one scrape of it cost the tap in CPU seconds and in time."""
    names = [f"model-{number}" for number in range(models)]
    flags = ["--step-time=0", "--prefill-time=0"]
    with contextlib.ExitStack() as stack:
        behind = stack.enter_context(engine(binary, folder, "scale", [f"{name}=0.8,0.7,0.6,0.5" for name in names], flags))
        tap = stack.enter_context(Tap(binary, folder, "scale", behind.address))
        kinds = [None, *[f"tag-{number}" for number in range(tags)]]
        # Of all kinds: streamed or not, of one token, with several sequences.
        more = [{"stream": True}, {}, {"n": 2}, {"max_tokens": 1}]
        wanted = [
            (tap.data, {**chat(name, 64), **extra}, {"X-Spectap-Tag": tag} if tag else {})
            for name in names for tag in kinds for extra in more
        ]
        send_all(wanted)
        until("all are counted", lambda: tap.json("/api/v1/summary")["n"]["exchanges"] >= len(wanted))
        cpu, begun, scrapes = cpu_of(tap.process.pid), time.monotonic(), 500
        for _ in range(scrapes):
            page = tap.get("/metrics", accept=OPENMETRICS)
        took = (time.monotonic() - begun) / scrapes
        return page, (cpu_of(tap.process.pid) - cpu) / scrapes, took


def cpu_of(pid):
    """CPU seconds of a process, from the kernel's ticks."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def samples(page):
    return sum(1 for line in page.splitlines() if line and not line.startswith("#"))


def compressed(page):
    return len(gzip.compress(page.encode(), 6))


def own(prometheus, name):
    """A figure of Prometheus about itself."""
    with urllib.request.urlopen(f"{prometheus.url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    values = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.M)
    return sum(float(value) for value in values)


def appended(prometheus):
    return own(prometheus, "prometheus_tsdb_head_samples_appended_total")


def evaluated(prometheus):
    """How often all rules were evaluated, in rounds."""
    rules = sum(len(group["rules"]) for group in prometheus.ask("/api/v1/rules")["groups"])
    return own(prometheus, "prometheus_rule_evaluations_total") / rules if rules else 0


def ask_dashboard(prometheus):
    for _, target in targets(dashboard()):
        expression = substituted(target["expr"], {}, rate_interval="60s", whole_range="120s")
        if target["instant"]:
            prometheus.query(expression, time.time())
        else:
            prometheus.range(expression, time.time() - 120, time.time(), step=15)


def many(folder, pages, count, seconds):
    """A Prometheus with so many taps; gives its figures after a while of steady scrapes."""
    taps = [(pages.address, {"pod": f"tap-{number}", "namespace": "inference"}) for number in range(count)]
    folder.mkdir(parents=True, exist_ok=True)
    with Prometheus(folder, {"spectap": taps}, interval=f"{INTERVAL}s") as prometheus:
        until("all are scraped", lambda: prometheus.value("count(up == 1)") == count, 300)
        # The first scrape of each makes its series and is not what the later ones cost.
        time.sleep(2 * INTERVAL)
        pid = prometheus.process.pid
        begun, used, samples_before = time.monotonic(), cpu_of(pid), appended(prometheus)
        time.sleep(seconds)
        passed = time.monotonic() - begun
        scraping = (cpu_of(pid) - used) / passed
        rate = (appended(prometheus) - samples_before) / passed
        begun, used = time.monotonic(), cpu_of(pid)
        ask_dashboard(prometheus)
        board = cpu_of(pid) - used - scraping * (time.monotonic() - begun)
        config = json.loads((folder / "prometheus.yml").read_text())
        config["rule_files"] = [str(RULES), str(ALERTS)]
        (folder / "prometheus.yml").write_text(json.dumps(config))
        prometheus.process.send_signal(signal.SIGHUP)
        until("the rules have been evaluated", lambda: evaluated(prometheus) >= 1, 120)
        begun, used, rounds = time.monotonic(), cpu_of(pid), evaluated(prometheus)
        time.sleep(max(seconds, 60))
        with_rules = cpu_of(pid) - used - scraping * (time.monotonic() - begun)
        return {
            "series": own(prometheus, "prometheus_tsdb_head_series"),
            "samples": rate,
            "scraping": scraping,
            "memory": own(prometheus, "process_resident_memory_bytes"),
            "round": with_rules / (evaluated(prometheus) - rounds),
            "board": board,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectap", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--taps", default="100,300,1000")
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    usual = None
    print("| a tap of | series | page | compressed | CPU of a scrape | time of a scrape |\n|---|---|---|---|---|---|")
    for name, models, tags in SHAPES:
        page, cpu, took = page_of(arguments.spectap, arguments.work, models, tags)
        usual = page if name == USUAL else usual
        size = f"{len(page) / 1000:.0f} kB | {compressed(page) / 1000:.0f} kB"
        print(f"| {name} | {samples(page)} | {size} | {1000 * cpu:.1f} ms | {1000 * took:.1f} ms |", flush=True)
    print("\n| taps | series | samples/s | scraping | memory | a round of rules and alerts | the dashboard once |")
    print("|---|---|---|---|---|---|---|")
    for count in map(int, arguments.taps.split(",")):
        with Pages(usual) as pages:
            found = many(arguments.work / str(count), pages, count, arguments.seconds)
        print(
            f"| {count:,} | {found['series']:,.0f} | {found['samples']:,.0f} | {found['scraping']:.2f} cores |"
            f" {found['memory'] / 2**20:,.0f} MiB | {found['round']:.2f} s | {found['board']:.2f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
