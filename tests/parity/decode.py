"""What the made-up engine decodes: verify steps from a seed, and the payload in which it reports them.

What request number i gets depends on the seed and on i only, so the payloads of a run are the same in every run; which
prompt gets which is not.
"""

import json
import random

# Ways to break a healthy payload, one thing each.
BROKEN = [
    "hist_sum",
    "hist_weighted",
    "accepted_over_drafted",
    "hist_strings",
    "hist_too_long",
    "missing_key",
    "negative_bucket",
    "null_payload",
    "empty_payload",
    "bool_bucket",
    "list_payload",
    "sent_twice",
    "zero_steps_with_drafts",
]

# Each engine's own names.
NAMES = {
    "vllm": {
        "accepted": "num_accepted_draft_tokens",
        "drafted": "num_draft_tokens",
        "rate": "draft_acceptance_rate",
        "mean": "mean_acceptance_length",
    },
    "trtllm": {
        "accepted": "total_accepted_draft_tokens",
        "drafted": "total_draft_tokens",
        "rate": "acceptance_rate",
        "mean": None,
    },
}


def schedule(options):
    """What each request of a run is to be; repeats after its end."""
    kinds = ["zero"] * options.zero + ["nostats"] * options.nostats
    kinds += [f"broken:{BROKEN[i % len(BROKEN)]}" for i in range(options.broken)]
    kinds += ["contradicting"] * options.contradicting + ["cut"] * options.cut
    kinds += ["error_event"] * options.error_event + ["refused"] * options.refused + ["silent"] * options.silent
    kinds += ["normal"] * max(options.requests - len(kinds), 0)
    random.Random(f"{options.seed}/schedule").shuffle(kinds)
    return kinds


def simulate(options, kind, index, most_tokens, choice=0):
    """One sequence: its steps in order and what they add up to."""
    rng = random.Random(f"{options.seed}/{index}/{choice}")
    chance = rng.uniform(0.15, 0.97)
    # The prefill emits one token before the first step; a zero-step request ends there.
    target = 1 if kind == "zero" else min(most_tokens, rng.randint(8, 120))
    emitted, accepted, drafted = 1, [], []
    while emitted < target:
        width = rng.randint(1, options.k) if options.adaptive else options.k
        kept = 0
        while kept < width and rng.random() < chance:
            kept += 1
        accepted.append(kept)
        drafted.append(width)
        emitted += kept + 1
    return {"accepted": accepted, "drafted": drafted, "completion_tokens": emitted}


def payload(options, kind, sequence):
    """What the engine reports of a sequence; "absent" where it says nothing at all."""
    names = NAMES[options.engine]
    steps, accepted, drafted = len(sequence["accepted"]), sum(sequence["accepted"]), sum(sequence["drafted"])
    if kind == "nostats" or (options.engine == "trtllm" and steps == 0):
        return "absent"
    histogram = [0] * (options.k + 1)
    for kept in sequence["accepted"]:
        histogram[kept] += 1
    report = {
        "acceptance_histogram": histogram,
        "num_spec_steps": steps,
        names["accepted"]: accepted,
        names["drafted"]: drafted,
        names["rate"]: accepted / drafted if drafted else 0.0,
        # With a draft length that changes TensorRT-LLM knows no bound.
        "num_spec_tokens": None if options.engine == "trtllm" and options.adaptive else options.k,
    }
    if names["mean"]:
        report[names["mean"]] = 1.0 + accepted / steps if steps else 1.0
    if options.detailed:
        report["per_step_accepted"] = sequence["accepted"]
        report["per_step_drafted"] = sequence["drafted"]
    if kind == "contradicting":
        report[names["rate"]] *= 0.9
        if names["mean"]:
            report[names["mean"]] += 0.125
    if kind.startswith("broken:"):
        return broken(names, report, kind.removeprefix("broken:"))
    return report


def broken(names, healthy, how):
    """The payload with one thing wrong. "sent_twice" leaves it as it is: the server sends it on two chunks."""
    report = json.loads(json.dumps(healthy))
    histogram = report["acceptance_histogram"]
    match how:
        case "hist_sum":
            histogram[0] += 1
        case "hist_weighted":
            report[names["accepted"]] += 1
        case "accepted_over_drafted":
            # A step more that accepted one draft than the drafts that are left.
            histogram[1] += 1
            report["num_spec_steps"] += 1
            report[names["accepted"]] += 1
            report[names["drafted"]] = report[names["accepted"]] - 1
        case "hist_strings":
            report["acceptance_histogram"] = [str(steps) for steps in histogram]
        case "hist_too_long":
            histogram.append(0)
        case "missing_key":
            del report[names["rate"]]
        case "negative_bucket":
            histogram[0] = -1
        case "null_payload":
            return None
        case "empty_payload":
            return {}
        case "bool_bucket":
            histogram[-1] = False
        case "list_payload":
            return [report]
        case "zero_steps_with_drafts":
            report["acceptance_histogram"] = [0] * len(histogram)
            report["num_spec_steps"] = report[names["accepted"]] = 0
            for key in ("per_step_accepted", "per_step_drafted"):
                report.pop(key, None)
    return report
