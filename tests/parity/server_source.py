#!/usr/bin/env python3
"""`aiperf speed-bench-report --source server` against `/metrics/engine-names`, whatever engine is behind spectap.

    server_source.py --spectap target/debug/spectap --work .work/parity

AIPerf runs SPEED-Bench rows through spectap and reads spectap's page as the server's; its report must then show the length
and rate of the engine's own counters, for engines of whose own names it finds no rate, or nothing. Exit code 1 on any
difference.
"""

import argparse
import contextlib
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys

import processes

# Not SGLang: AIPerf finds its gauge of the length on the engine's own page, and takes it before any counter.
ENGINES = ["vllm", "trtllm", "llamacpp"]
CATEGORIES = ["coding", "math", "writing"]
REQUESTS = 12


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spectap", type=pathlib.Path, required=True, help="the binary to test")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(".work/parity"), help="folder kept between runs")
    parser.add_argument("--only", action="append", choices=ENGINES, help="may be repeated")
    options = parser.parse_args()
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"
    failed = []
    for engine in options.only or ENGINES:
        folder = options.work.resolve() / "runs" / f"server-{engine}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        told, wanted = run(engine, options.spectap.resolve(), folder, options.work.resolve() / "hub")
        good = told == wanted
        print(f"{'equal' if good else 'DIFFERS'}  {engine}: AIPerf says {told}, the counters {wanted}", flush=True)
        failed += [] if good else [engine]
    return 1 if failed else 0


def run(engine, binary, folder, home):
    """One run; gives what AIPerf's report says and what the page's counters say, both in two decimals."""
    rows = folder / "qualitative.jsonl"
    lines = []
    for number in range(REQUESTS):
        category = CATEGORIES[number % len(CATEGORIES)]
        messages = [{"role": "user", "content": f"Tell me about {category}, part {number}."}]
        lines.append(json.dumps({"question_id": f"{number:032x}", "category": category, "messages": messages}))
    rows.write_text("\n".join(lines) + "\n")
    with contextlib.ExitStack() as stack:
        command = [binary, "simulate", f"--engine={engine}", "--listen=127.0.0.1:0", "--model=made-up"]
        command += ["--prefill-time=5", "--step-time=2"]
        simulated = stack.enter_context(processes.Server(command, folder / "engine.log"))
        port = simulated.port_after("http://127.0.0.1:")
        addresses = ["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--scrape-interval=100ms"]
        command = [binary, "serve", f"--upstream=http://127.0.0.1:{port}", *addresses]
        tap = stack.enter_context(processes.Server(command, folder / "spectap.log"))
        data, admin = tap.port_after("http://127.0.0.1:"), tap.port_after("numbers on http://127.0.0.1:")
        page = f"http://127.0.0.1:{admin}/metrics/engine-names"
        arguments = ["--endpoint-type=chat", "--streaming", "--concurrency=2", f"--request-count={REQUESTS}"]
        prompts = [f"--input-file={rows}", "--custom-dataset-type=speed_bench_qualitative"]
        processes.aiperf(folder, home, data, [*arguments, f"--server-metrics={page}"], prompts)
        counters = json.loads((folder / "server_metrics_export.json").read_text())["metrics"]
    moved = {
        name: counters[f"vllm:spec_decode_num_{name}"]["series"][0]["stats"]["total"]
        for name in ("drafts", "draft_tokens", "accepted_tokens")
    }
    wanted = {
        "accept_length": f"{1 + moved['accepted_tokens'] / moved['drafts']:.2f}",
        "accept_rate": f"{moved['accepted_tokens'] / moved['draft_tokens']:.2f}",
    }
    return {metric: column(folder, metric) for metric in wanted}, wanted


def column(folder, metric):
    """The one value that AIPerf's report has for the run."""
    command = [pathlib.Path(sys.executable).parent / "aiperf", "speed-bench-report", folder, "--source=server"]
    command += [f"--metric={metric}", "--format=csv", f"--output={folder / metric}.csv"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    (folder / f"{metric}.log").write_text(done.stdout + done.stderr)
    text = (folder / f"{metric}.csv").read_text() if (folder / f"{metric}.csv").exists() else done.stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    return rows[0].get("Overall") if rows else None


if __name__ == "__main__":
    sys.exit(main())
