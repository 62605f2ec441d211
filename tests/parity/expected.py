"""What the numbers have to be, worked out from the engine's own log alone: the rules once more, in plain Python."""

import json
import math

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
FAILING = {"refused", "error_event", "cut", "silent"}
HISTOGRAM = "pooled_spec_decode_acceptance_histogram"

# Tag, label, unit, whether it has statistics; in the order of the console.
ROWS = [
    ("spec_decode_acceptance_length", "Acceptance Length", "ratio", True),
    ("spec_decode_token_weighted_acceptance_length", "Token-Weighted Acceptance Length", "ratio", False),
    ("spec_decode_draft_acceptance_rate", "Draft Acceptance Rate", "%", True),
    ("spec_decode_overall_draft_acceptance_rate", "Overall Draft Acceptance Rate", "%", False),
    ("spec_decode_accepted_per_verified", "Accepted per Verified", "ratio", True),
    ("spec_decode_steps", "Spec Decode Steps", "count", True),
    ("spec_decode_zero_step_requests", "Zero-Step Requests", "requests", False),
]
# The same of what is in files only.
IN_FILES = [
    ("spec_decode_accepted_draft_tokens", "Accepted Draft Tokens", "tokens", True),
    ("spec_decode_draft_tokens", "Draft Tokens", "tokens", True),
    ("total_spec_decode_steps", "Total Spec Decode Steps", "count", False),
    ("total_accepted_draft_tokens", "Total Accepted Draft Tokens", "tokens", False),
    ("total_draft_tokens", "Total Draft Tokens", "tokens", False),
]
TAGS = [tag for tag, *_ in ROWS + IN_FILES]

NAMES = {
    "vllm": ("num_accepted_draft_tokens", "num_draft_tokens", "draft_acceptance_rate"),
    "trtllm": ("total_accepted_draft_tokens", "total_draft_tokens", "acceptance_rate"),
}
ENGINES = {"vllm": "vllm", "trtllm": "tensorrt_llm"}


def read_log(path):
    """The log's lines in the order in which the requests came."""
    return sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda entry: entry["index"])


def verdict(entry):
    """What has to become of a response's numbers: acceptance, reason where a payload was there, and the records."""
    if entry["kind"] == "refused":
        return None, None, []
    if entry["kind"] == "broken:sent_twice" and entry["stream"]:
        return "ambiguous", "two_payloads", []
    records, reason = [], None
    for payload in entry["payloads"]:
        # None, "absent", an empty object and a list are no payloads.
        if isinstance(payload, dict) and payload:
            broken, record = read(entry["engine"], payload)
            reason = reason or broken
            records += [record] if record else []
    if any(record["num_spec_steps"] for record in records):
        acceptance = "recorded"
    elif records:
        acceptance = "zero_step"
    else:
        acceptance = "malformed" if reason else "absent"
    if entry["n"] == 1 and records:
        records[0]["completion_tokens"] = entry["usage"]["completion_tokens"]
    return acceptance, reason, records


def read(engine, payload):
    """The first rule that a payload breaks, or its record under AIPerf's names."""
    accepted_name, drafted_name, rate_name = NAMES[engine]
    histogram, steps = payload["acceptance_histogram"], payload["num_spec_steps"]
    accepted, drafted, k = payload[accepted_name], payload[drafted_name], payload["num_spec_tokens"]
    are_counts = all(type(count) is int and count >= 0 for count in histogram)
    if not are_counts or rate_name not in payload or (engine == "trtllm" and steps == 0):
        return "bad_number", None
    if k is not None and len(histogram) != k + 1:
        return "histogram_length", None
    if sum(histogram) != steps:
        return "identity_sum", None
    if sum(kept * count for kept, count in enumerate(histogram)) != accepted:
        return "identity_weighted", None
    if steps == 0 and drafted > 0:
        return "zero_steps_with_drafts", None
    if accepted > drafted:
        return "accepted_gt_drafted", None
    record = {
        "engine": ENGINES[engine],
        "mean_acceptance_length": payload["mean_acceptance_length"] if engine == "vllm" else 1 + accepted / steps,
        "draft_acceptance_rate": payload[rate_name],
        "acceptance_histogram": {str(kept): count for kept, count in enumerate(histogram) if count},
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": drafted,
        "num_spec_steps": steps,
    }
    if k is not None:
        record["num_spec_tokens"] = k
    for name in ("per_step_accepted", "per_step_drafted"):
        if engine == "vllm" and payload.get(name) is not None:
            record[name] = payload[name]
    return None, record


def by_the_counts(record):
    """The record with mean and rate worked out from its own counts, where it has any."""
    accepted, drafted, steps = (
        record[name] for name in ("num_accepted_draft_tokens", "num_draft_tokens", "num_spec_steps")
    )
    if not steps:
        return record
    return {**record, "mean_acceptance_length": 1 + accepted / steps, "draft_acceptance_rate": accepted / drafted}


def values(record):
    """The six figures of one request, by tag."""
    accepted, drafted, steps = (
        record[name] for name in ("num_accepted_draft_tokens", "num_draft_tokens", "num_spec_steps")
    )
    return {
        "spec_decode_acceptance_length": record["mean_acceptance_length"],
        "spec_decode_draft_acceptance_rate": record["draft_acceptance_rate"] * 100.0,
        "spec_decode_accepted_per_verified": (accepted + steps) / (drafted + steps),
        "spec_decode_steps": steps,
        "spec_decode_accepted_draft_tokens": accepted,
        "spec_decode_draft_tokens": drafted,
    }


def summary(records):
    """All tags of these records (zero-step ones among them), and the pooled histogram."""
    with_steps = [record for record in records if record["num_spec_steps"]]
    tags, pool = {}, {}
    for record in with_steps:
        for tag, value in values(record).items():
            tags.setdefault(tag, []).append(value)
        for kept, count in record["acceptance_histogram"].items():
            pool[int(kept)] = pool.get(int(kept), 0) + count
    tags = {tag: statistics(list_of) for tag, list_of in tags.items()}
    if with_steps:
        accepted, drafted, steps = (
            sum(record[name] for record in with_steps)
            for name in ("num_accepted_draft_tokens", "num_draft_tokens", "num_spec_steps")
        )
        totals = {
            "total_accepted_draft_tokens": accepted,
            "total_draft_tokens": drafted,
            "total_spec_decode_steps": steps,
            "spec_decode_token_weighted_acceptance_length": 1 + accepted / steps,
            "spec_decode_overall_draft_acceptance_rate": accepted / drafted * 100.0,
        }
        tags |= {tag: {"avg": float(value)} for tag, value in totals.items()}
    if zero_step := len(records) - len(with_steps):
        tags["spec_decode_zero_step_requests"] = {"avg": float(zero_step)}
    return tags, {str(kept): pool[kept] for kept in sorted(pool)}


def statistics(figures):
    """As AIPerf has them: population deviation, percentiles by linear interpolation between closest ranks."""
    figures = sorted(map(float, figures))
    count, total = len(figures), math.fsum(figures)
    mean = total / count
    found = {"avg": mean, "min": figures[0], "max": figures[-1], "sum": total, "count": count}
    found["std"] = math.sqrt(math.fsum((figure - mean) ** 2 for figure in figures) / count)
    for percent in PERCENTILES:
        rank = percent / 100 * (count - 1)
        low = int(rank)
        high = min(low + 1, count - 1)
        found[f"p{percent}"] = figures[low] + (rank - low) * (figures[high] - figures[low])
    return found
