"""What taps cost: the series of one, what a scrape of it costs, and what many of them cost a Prometheus on this machine.

    scale.py --spectap BINARY --work FOLDER [--taps 100,300,1000] [--seconds 90]

Prints the tables of docs/scale.md. CPU is the time that the process used, so that it hardly depends on what else runs.
"""

import argparse
import contextlib
import pathlib
import re
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
SHAPES = [("1 model", 1, 0), ("1 model, 4 tags", 1, 4), ("3 models, 10 tags", 3, 10), ("20 models, 10 tags", 20, 10)]
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
        cpu, begun, scrapes = cpu_of(tap.process.pid), time.monotonic(), 50
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
    import gzip

    return len(gzip.compress(page.encode(), 6))


def own(prometheus, name):
    """A figure of Prometheus about itself."""
    with urllib.request.urlopen(f"{prometheus.url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    values = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.M)
    return sum(float(value) for value in values)


def many(folder, pages, count, seconds):
    """A Prometheus with so many taps; gives its figures after a while of steady scrapes."""
    taps = [(pages.address, {"pod": f"tap-{number}", "namespace": "inference"}) for number in range(count)]
    folder.mkdir(parents=True, exist_ok=True)
    with Prometheus(folder, {"spectap": taps}, [RULES, ALERTS], interval=f"{INTERVAL}s") as prometheus:
        until("all are scraped", lambda: prometheus.value("count(up == 1)") == count, 120)
        # Every counter needs two scrapes for a rate, and the first one makes the series.
        time.sleep(2 * INTERVAL)
        pid = prometheus.process.pid
        cpu, begun, served = cpu_of(pid), time.monotonic(), pages.served
        appended = own(prometheus, "prometheus_tsdb_head_samples_appended_total")
        time.sleep(seconds)
        passed = time.monotonic() - begun
        used = (cpu_of(pid) - cpu) / passed
        rate = (own(prometheus, "prometheus_tsdb_head_samples_appended_total") - appended) / passed
        slowest = 0
        for _, target in targets(dashboard()):
            expression = substituted(target["expr"], {}, rate_interval="60s", whole_range="120s")
            asked, end = time.monotonic(), time.time()
            if target["instant"]:
                prometheus.query(expression, end)
            else:
                prometheus.range(expression, end - 120, end, step=15)
            slowest = max(slowest, time.monotonic() - asked)
        return {
            "taps": count,
            "series": own(prometheus, "prometheus_tsdb_head_series"),
            "samples_s": rate,
            "scrapes_s": (pages.served - served) / passed,
            "cores": used,
            "memory": own(prometheus, "process_resident_memory_bytes"),
            "rules_s": own(prometheus, "prometheus_rule_group_last_duration_seconds"),
            "slowest_s": slowest,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectap", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--taps", default="100,300,1000")
    parser.add_argument("--seconds", type=int, default=90)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    usual = None
    print("| a tap of | series | page | compressed | CPU of a scrape | time of a scrape |\n|---|---|---|---|---|---|")
    for name, models, tags in SHAPES:
        page, cpu, took = page_of(arguments.spectap, arguments.work, models, tags)
        usual = page if name == USUAL else usual
        size = f"{len(page) / 1000:.0f} kB | {compressed(page) / 1000:.0f} kB"
        print(f"| {name} | {samples(page)} | {size} | {1000 * cpu:.1f} ms | {1000 * took:.1f} ms |", flush=True)
    print("\n| taps | series | samples/s | CPU | memory | rules and alerts | slowest query of the dashboard |\n|---|---|---|---|---|---|---|")
    for count in map(int, arguments.taps.split(",")):
        with Pages(usual) as pages:
            found = many(arguments.work / str(count), pages, count, arguments.seconds)
        print(
            f"| {found['taps']:,} | {found['series']:,.0f} | {found['samples_s']:,.0f} | {found['cores']:.2f} cores |"
            f" {found['memory'] / 2**20:,.0f} MiB | {found['rules_s']:.2f} s | {found['slowest_s']:.2f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
