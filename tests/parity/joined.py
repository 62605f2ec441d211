"""Request by request: AIPerf's trace and spectap's observations, joined by the request id that AIPerf sent."""

import expected

OURS_ALONE = ("provenance", "choice_index", "recomputed")

# What spectap's times and lengths are called, and AIPerf's.
COMPARED = [
    ("time to first token", "ms", "timing", "time_to_first_token_ms", "time_to_first_token"),
    ("inter-token latency", "ms", "timing", "inter_token_latency_ms", "inter_token_latency"),
    ("inter-chunk latency", "ms", "timing", "inter_chunk_latency_ms", "inter_chunk_latency"),
    ("request latency", "ms", "timing", "request_latency_ms", "request_latency"),
    ("output length", "tokens", "usage", "completion_tokens", "output_sequence_length"),
    ("input length", "tokens", "usage", "prompt_tokens", "input_sequence_length"),
]


def records(checks, trace, observations, usage_withheld):
    """Equal records, equal lengths; a request that failed for AIPerf is none that completed for spectap."""
    for line in trace:
        request = line["metadata"]["x_request_id"]
        seen = observations.get(request)
        if seen is None:
            checks.same(f"{request} at spectap", None, "an observation")
            continue
        failed = line.get("error") is not None
        # An answer without text is a failure for AIPerf; for spectap it is complete, but in the view of no means.
        has_times = seen["timing"]["request_latency_ms"] is not None
        checks.same(f"{request} outcome", seen["outcome"] == "complete" and has_times, not failed)
        if failed:
            continue
        ours = [
            {name: value for name, value in record.items() if value is not None and name not in OURS_ALONE}
            for record in seen["spec_decode_acceptance"]
            if record["num_spec_steps"]
        ]
        theirs = line.get("spec_decode_acceptance") or {}
        theirs = {name: value for name, value in theirs.items() if value is not None}
        if usage_withheld:
            checks.same(f"{request} record that AIPerf should not have", theirs, {})
            continue
        if seen["n"] == 1:
            checks.same(f"{request} record", ours[0] if ours else {}, theirs)
        else:
            checks.same(f"{request} record of several sequences", theirs, {})
        for name, tag in (("completion_tokens", "output_sequence_length"), ("prompt_tokens", "input_sequence_length")):
            checks.same(f"{request} {name}", seen["usage"][name], line["metrics"].get(tag, {}).get("value"))


def with_log(checks, log, observations):
    """Every observation, those of a warm-up too, is what the engine's log says that it has to be."""
    outcomes = {"refused": "error_status", "error_event": "error_event", "cut": "truncated"}
    for entry in log:
        seen, request = observations.get(entry["x_request_id"], {}), f"request {entry['index']} ({entry['kind']})"
        acceptance, reason, wanted = expected.verdict(entry)
        checks.same(f"{request} outcome", seen.get("outcome"), outcomes.get(entry["kind"], "complete"))
        checks.same(f"{request} acceptance", seen.get("acceptance"), acceptance)
        if acceptance in ("malformed", "ambiguous"):
            checks.same(f"{request} reason", seen.get("reason"), reason)
        records = [
            {name: value for name, value in record.items() if value is not None and name not in OURS_ALONE}
            for record in seen.get("spec_decode_acceptance", [])
        ]
        checks.same(f"{request} records", records, wanted)
        for record, from_log in zip(seen.get("spec_decode_acceptance", []), wanted, strict=False):
            is_ordered = "per_step_accepted" in from_log
            checks.same(f"{request} provenance", record["provenance"], "per_step" if is_ordered else "histogram")
            by_counts = expected.by_the_counts(from_log)
            named = {name: by_counts[name] for name in ("mean_acceptance_length", "draft_acceptance_rate")}
            contradicts = entry["kind"] == "contradicting" and from_log["num_spec_steps"] > 0
            checks.same(f"{request} recomputed", record.get("recomputed"), named if contradicts else None)


def times(checks, trace, observations):
    """How far AIPerf's figures and spectap's are apart, request by request; only grossly wrong times fail here."""
    early = compared = 0
    for label, unit, part, ours, theirs in COMPARED:
        differences = []
        for line in trace:
            seen = observations.get(line["metadata"]["x_request_id"])
            value = line["metrics"].get(theirs, {}).get("value") if line.get("error") is None else None
            if isinstance(value, list):
                value = sum(value) / len(value) if value else None
            own = seen[part].get(ours) if seen else None
            if value is not None and own is not None:
                differences.append(value - own)
                if label == COMPARED[0][0]:
                    compared += 1
                    early += own <= value + 5.0
        if differences:
            differences.sort()
            p50, p90, most = (differences[round(share * (len(differences) - 1))] for share in (0.5, 0.9, 1.0))
            checks.say(
                f"         {label:<20} AIPerf - spectap in {unit}: p50 {p50:7.3f}, p90 {p90:7.3f}, max {most:7.3f},"
                f" min {differences[0]:7.3f} ({len(differences)} requests)"
            )
    if compared:
        checks.same("time to first token at most AIPerf's + 5 ms in 95 % of requests", early >= 0.95 * compared, True)
        checks.close("times are sane", f"time to first token in {early} of {compared} requests at most AIPerf's + 5 ms")
