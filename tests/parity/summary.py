"""Figures beside figures: AIPerf's JSON and `/api/v1/summary`."""

import expected

LENGTHS = ["output_sequence_length", "input_sequence_length"]


def same(checks, theirs, ours, lengths=True):
    """Every tag is in both or in neither, and every member that AIPerf gives is equal."""
    for tag in expected.TAGS + (LENGTHS if lengths else []):
        figures(checks, tag, ours["metrics"].get(tag), theirs.get(tag))
    checks.same(expected.HISTOGRAM, ours[expected.HISTOGRAM], theirs.get(expected.HISTOGRAM, {}))


def as_expected(checks, ours, records):
    """The same against what the log says that the figures have to be."""
    tags, pool = expected.summary(records)
    for tag in expected.TAGS:
        figures(checks, tag, ours["metrics"].get(tag), tags.get(tag))
    checks.same(expected.HISTOGRAM, ours[expected.HISTOGRAM], pool)


def figures(checks, tag, ours, theirs):
    """One tag."""
    checks.same(f"{tag} is there", ours is not None, theirs is not None)
    for member, value in (theirs or {}).items():
        checks.same(f"{tag}.{member}", (ours or {}).get(member), value, 1e-9)


def counts(checks, ours, log):
    """What became of every exchange, by reason where a payload was there: nothing vanishes."""
    verdicts = [expected.verdict(entry)[:2] for entry in log if entry["kind"] != "refused"]
    checks.same("n.exchanges", ours["n"]["exchanges"], len(verdicts))
    for acceptance in ("recorded", "zero_step", "absent", "malformed", "ambiguous", "unobserved"):
        wanted = [reason for found, reason in verdicts if found == acceptance]
        checks.same(f"n.{acceptance}", ours["n"][acceptance], len(wanted))
        if acceptance in ("malformed", "ambiguous"):
            reasons = {reason: wanted.count(reason) for reason in sorted(set(wanted))}
            checks.same(f"reasons of {acceptance}", ours.get("reasons", {}).get(acceptance, {}), reasons)
    return ", ".join(f"{count} {name}" for name, count in ours["n"].items() if count and name != "exchanges")
