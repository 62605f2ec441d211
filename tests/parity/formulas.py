"""AIPerf's own output recomputed from the engine's log: what AIPerf sees behind spectap is what the engine sent.

Every per-request value, every statistic, total and bucket, the CSV's rows, the console's cells, and the relations of
the times. If one of them fails, spectap changed something that AIPerf sees, or the rules of `expected.py` are wrong.
"""

import console
import csv_rows
import expected


def same(checks, folder, log, trace, summary, case):
    """All of it; `log` and `trace` are those of the profiling phase."""
    by_id = {line["metadata"]["x_request_id"]: line for line in trace}
    checks.same("requests", sorted(by_id), sorted(entry["x_request_id"] for entry in log))
    records = []
    for entry in log:
        line = by_id.get(entry["x_request_id"])
        if line is not None:
            records += of_request(checks, entry, line, case)
    tags, pool = expected.summary(records)
    for tag in expected.TAGS:
        theirs = summary.get(tag) or {}
        checks.same(f"{tag} is there", bool(theirs), tag in tags)
        for member, value in tags.get(tag, {}).items():
            checks.same(f"{tag}.{member}", theirs.get(member), value, 1e-9)
    checks.same(expected.HISTOGRAM, summary.get(expected.HISTOGRAM, {}), pool)
    csv_rows.figures(checks, (folder / "profile_export_aiperf.csv").read_text(), tags)
    section = console.aiperf_section((folder / "profile_export_console.txt").read_text())
    checks.same("console has a section", bool(section), bool(tags))
    if section:
        console.cells(checks, section, tags, pool)


def of_request(checks, entry, line, case):
    """One request's record, its metrics and its times; gives the record, if it counts."""
    request = f"request {entry['index']} ({entry['kind']})"
    metrics = {tag: metric["value"] for tag, metric in line["metrics"].items()}
    is_failing = entry["kind"] in expected.FAILING
    checks.same(f"{request} failed", line.get("error") is not None, is_failing)
    if is_failing:
        checks.same(f"{request} acceptance metrics", [tag for tag in metrics if tag in expected.TAGS], [])
        return []
    records = expected.verdict(entry)[2]
    if case.usage_withheld or entry["n"] > 1:
        records = []
    with_steps = [record for record in records if record["num_spec_steps"]]
    theirs = {name: value for name, value in (line.get("spec_decode_acceptance") or {}).items() if value is not None}
    checks.same(f"{request} record", theirs, with_steps[0] if with_steps else {})
    wanted = expected.values(with_steps[0]) if with_steps else {}
    checks.same(f"{request} tags", sorted(tag for tag in metrics if tag in expected.TAGS), sorted(wanted))
    for tag, value in wanted.items():
        checks.same(f"{request} {tag}", metrics.get(tag), value, 1e-9)
    if not case.usage_withheld:
        checks.same(f"{request} output", metrics["output_sequence_length"], entry["usage"]["completion_tokens"])
    if entry["stream"] and entry["n"] == 1:
        of_times(checks, request, metrics, len(entry["t_chunks_ns"]))
    return records


def of_times(checks, request, metrics, chunks):
    """AIPerf saw as many content chunks as were sent, and its times fit each other."""
    gaps = metrics.get("inter_chunk_latency", [])
    checks.same(f"{request} content chunks", len(gaps), chunks - 1)
    latency, first = metrics["request_latency"], metrics["time_to_first_token"]
    checks.same(f"{request} latency is first token and gaps", latency, first + sum(gaps), 1e-9)
    if (tokens := metrics.get("output_sequence_length", 0)) >= 2:
        between = metrics["inter_token_latency"]
        checks.same(f"{request} inter-token latency", between, (latency - first) / (tokens - 1), 1e-9)


def in_scrape(checks, export, log):
    """The engine's counters as AIPerf read them through spectap: they moved by all that the log holds."""
    sums = {
        "num_drafts": lambda entry: sum(map(len, entry["steps_accepted"])),
        "num_draft_tokens": lambda entry: sum(map(sum, entry["steps_drafted"])),
        "num_accepted_tokens": lambda entry: sum(map(sum, entry["steps_accepted"])),
    }
    for name, of_entry in sums.items():
        series = export["metrics"].get(f"vllm:spec_decode_{name}", {}).get("series", [{}])
        moved = series[0].get("stats", {}).get("total")
        checks.same(f"engine's {name}", moved, float(sum(of_entry(entry) for entry in log)))
