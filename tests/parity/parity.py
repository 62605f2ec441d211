#!/usr/bin/env python3
"""Real AIPerf through spectap: both must tell the same numbers, to the last digit that AIPerf prints.

    parity.py --spectap target/debug/spectap --work .work/parity [--only vllm-summary] [--jobs 2]

For each case a made-up engine is started, spectap before it, and AIPerf sends its requests through. Then

1. AIPerf's JSON and `/api/v1/summary`: every statistic to 1e-9, the pooled histogram exactly, and what is absent;
2. AIPerf's console and `spectap report`: table and line below it, character for character;
3. AIPerf's CSV and `spectap report --format csv`: row by row, character for character;
4. AIPerf's trace and `/api/v1/requests`, joined by `X-Request-ID`: records and token counts equal; times side by side;
5. AIPerf's output and the engine's own log: behind spectap AIPerf sees what the engine sent;
6. spectap's observations, and its counts of what carried no usable numbers, and the engine's own log.

Runs in the environment that AIPerf is installed in (`make parity` does all of it). Exit code 1 on any difference.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import console
import csv_rows
import expected
import formulas
import joined
import processes
import summary
from cases import CASES
from checks import Checks


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spectap", type=pathlib.Path, required=True, help="the binary to test")
    work = pathlib.Path(".work/parity")
    parser.add_argument("--work", type=pathlib.Path, default=work, help="folder kept between runs")
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES], help="may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    options = parser.parse_args()
    if not options.spectap.is_file():
        parser.error("--spectap must name a binary; cargo build makes target/debug/spectap")
    # All of it is on this machine, whatever proxy the machine has to use.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"
    begun, chosen = time.monotonic(), [case for case in CASES if not options.only or case.name in options.only]
    equal, differing = 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, case, options.spectap.resolve(), options.work.resolve()) for case in chosen]
        for case, finished in zip(chosen, runs, strict=True):
            checks, seconds = finished.result()
            print(f"\n== {case.name}: {case.says} ({seconds:.1f} s)", *checks.lines, sep="\n", flush=True)
            equal += checks.equal
            differing += [f"{case.name}: {difference}" for difference in checks.differences]
    seconds = time.monotonic() - begun
    print(f"\n{len(chosen)} runs of AIPerf in {seconds:.0f} s: {equal} figures equal, {len(differing)} differ")
    print("".join(f"   {difference}\n" for difference in differing[:40]), end="")
    return 1 if differing or not equal else 0


def run(case, binary, work):
    """One case; gives its checks and how long it took."""
    begun, folder, checks = time.monotonic(), work / "runs" / case.name, Checks()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        compare(checks, case, folder, through(checks, case, binary, folder, work / "hub"))
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        checks.same("the run", str(error), "an end")
        checks.close("the run itself")
    return checks, time.monotonic() - begun


@dataclasses.dataclass
class Ours:
    """What spectap says of a case."""

    summary: dict
    report: str
    csv: str
    observations: list


def through(checks, case, binary, folder, home):
    """Sends a case's requests through spectap; gives what spectap says of them."""
    scrape = [] if case.scrape else ["--no-server-metrics"]
    warmup = [f"--warmup-request-count={case.warmup}"] if case.warmup else []
    with processes.engine(folder, [f"--seed={case.name}", *case.engine]) as engine:
        engine_port = engine.port_after("listening on ")
        with processes.spectap(folder, binary, engine_port) as tap:
            port, admin_port = tap.port_after("http://127.0.0.1:"), tap.port_after("numbers on http://127.0.0.1:")
            count = f"--request-count={case.requests}"
            with concurrent.futures.ThreadPoolExecutor(1) as beside:
                arguments = [*case.aiperf, count, *warmup, *scrape]
                aiperf = beside.submit(processes.aiperf, folder, home, port, arguments)
                if case.run:
                    processes.begin_run(case.run, engine, engine_port, admin_port, aiperf.done)
                aiperf.result()
            observations = processes.settled(admin_port, case.requests + case.warmup)
            part = [f"--run={case.run}"] if case.run else []
            ours = Ours(
                processes.ask(admin_port, f"/api/v1/summary?run={case.run}"),
                processes.report(binary, admin_port, *part),
                processes.report(binary, admin_port, "--format=csv", *part),
                observations,
            )
        checks.same("spectap's exit code on SIGTERM", tap.code, 0)
    for name, answer in (("summary", ours.summary), ("requests", ours.observations)):
        (folder / f"spectap-{name}.json").write_text(json.dumps(answer, indent=1))
    (folder / "spectap-report.txt").write_text(ours.report)
    (folder / "spectap-report.csv").write_bytes(ours.csv.encode())
    return ours


def compare(checks, case, folder, ours):
    """The six comparisons of a run that is over."""
    theirs = json.loads((folder / "profile_export_aiperf.json").read_text())
    trace = [json.loads(line) for line in (folder / "profile_export.jsonl").read_text().splitlines()]
    trace = [line for line in trace if line["metadata"]["benchmark_phase"] == "profiling"]
    by_id = {seen["x_request_id"]: seen for seen in ours.observations}
    whole_log = expected.read_log(folder / "payload-log.jsonl")
    profiled = {line["metadata"]["x_request_id"] for line in trace}
    log = [entry for entry in whole_log if entry["x_request_id"] in profiled]
    checks.same("requests of the profiling phase", len(log), case.requests)
    checks.same("requests in the engine's log", len(whole_log), case.requests + case.warmup)
    section = console.aiperf_section((folder / "profile_export_console.txt").read_text())
    their_csv = (folder / "profile_export_aiperf.csv").read_bytes().decode()
    checks.close("number of requests at all three")
    # What spectap was asked about.
    asked = log if case.run else whole_log

    # With a warm-up that no run leaves out, or without usage, AIPerf has not what spectap saw, and where an engine
    # contradicts itself spectap believes the counts: then the log says what spectap's figures have to be.
    from_log = (case.warmup and not case.run) or case.usage_withheld or case.contradicting
    counted = [entry for entry in whole_log if entry["kind"] not in expected.FAILING and entry["n"] == 1]
    records = [expected.by_the_counts(record) for entry in counted for record in expected.verdict(entry)[2]]
    if from_log:
        summary.as_expected(checks, ours.summary, records)
        checks.close("/api/v1/summary and the engine's log", why(case))
        tags, pool = expected.summary(records)
        console.cells(checks, console.spectap_section(ours.report)[1], tags, pool)
        checks.close("cells of spectap report and the engine's log")
        csv_rows.figures(checks, ours.csv, tags)
        checks.close("rows of spectap report --format csv and the engine's log")
    else:
        summary.same(checks, theirs, ours.summary)
        checks.close("AIPerf's JSON and /api/v1/summary", f"{sum(tag in theirs for tag in expected.TAGS)} tags")
        console.same(checks, section, ours.report, ours.summary["n"]["exchanges"])
        checks.close("AIPerf's console and spectap report", f"{len(section)} lines")
        csv_rows.same(checks, their_csv, ours.csv)
        checks.close("AIPerf's CSV and spectap report --format csv")
    if case.warmup:
        of_profiling = [record for entry in log for record in by_id[entry["x_request_id"]]["spec_decode_acceptance"]]
        tags, pool = expected.summary(of_profiling)
        figures = {"metrics": tags_with_units(tags, theirs), expected.HISTOGRAM: pool}
        summary.same(checks, theirs, figures, lengths=False)
        checks.close("AIPerf's JSON and spectap's records of the profiling phase")
    if case.run:
        runs = {entry["x_request_id"]: by_id[entry["x_request_id"]]["run"] for entry in whole_log}
        of_run = sorted(request for request, run in runs.items() if run == case.run)
        checks.same("requests of the run", of_run, sorted(profiled))
        checks.close("requests of the run and AIPerf's profiling phase")
    if case.several:
        every = [record for entry in whole_log for record in expected.verdict(entry)[2]]
        summary.as_expected(checks, ours.summary["sequences"], every)
        checks.close("spectap's `sequences` and the engine's log", f"{len(every)} records that AIPerf leaves out")
    if case.contradicting:
        contradicting = sum(entry["kind"] == "contradicting" for entry in log)
        found = {finding["code"]: finding["n"] for finding in ours.summary["findings"]}
        checks.same("finding", found.get("mean_or_rate"), contradicting)
        checks.close("findings of spectap", f"{contradicting} contradictions")

    joined.records(checks, trace, by_id, case.usage_withheld)
    checks.close("AIPerf's trace and /api/v1/requests")
    joined.with_log(checks, whole_log, by_id)
    checks.close("/api/v1/requests and the engine's log")
    joined.times(checks, trace, by_id)
    formulas.same(checks, folder, log, trace, theirs, case)
    if case.scrape:
        export = json.loads((folder / "server_metrics_export.json").read_text())
        formulas.in_scrape(checks, export, whole_log)
    checks.close("AIPerf's output and the engine's log")
    note = summary.counts(checks, ours.summary, asked)
    checks.close("spectap's counts and the engine's log", note)


def tags_with_units(tags, theirs):
    """Figures of our own arithmetic have no unit to compare; take AIPerf's."""
    return {tag: {"unit": theirs.get(tag, {}).get("unit"), **figures} for tag, figures in tags.items()}


def why(case):
    """Why a case is held against the log instead of AIPerf."""
    if case.warmup:
        return "spectap counts the warm-up too, AIPerf does not"
    if case.usage_withheld:
        return "AIPerf, asking for no usage, sees no numbers; spectap has all"
    return "AIPerf believes the mean and rate as sent, spectap the counts"


if __name__ == "__main__":
    sys.exit(main())
