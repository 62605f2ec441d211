"""What Prometheus has is what the taps' JSON says, and what their records add up to."""

import datetime
import math

from figures import by


def close(what, got, expected):
    if got is None or not math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12):
        raise AssertionError(f"{what}: Prometheus says {got}, it should be {expected}")


def scrapes_with_json(fleet):
    """The counters of each tap, as Prometheus has them, are the figures of its summary. Gives how many were compared."""
    compared = 0
    for tap in fleet.all():
        summary = tap.json("/api/v1/summary")
        figures = summary["sequences"]["metrics"]
        histogram = summary["sequences"]["pooled_spec_decode_acceptance_histogram"]
        expected = {
            ("num_drafts_total", ""): figures["total_spec_decode_steps"]["avg"],
            ("num_draft_tokens_total", ""): figures["total_draft_tokens"]["avg"],
            ("num_accepted_tokens_total", ""): figures["total_accepted_draft_tokens"]["avg"],
            ("acceptance_length_count", ""): figures["spec_decode_acceptance_length"]["count"],
            ("acceptance_length_sum", ""): figures["spec_decode_acceptance_length"]["sum"],
        }
        for acceptance, exchanges in summary["n"].items():
            if exchanges and acceptance != "exchanges":
                expected["requests_total", f'acceptance="{acceptance}"'] = exchanges
        below = 0
        for accepted in range(17):
            below += histogram.get(str(accepted), 0)
            expected["accepted_tokens_per_step_bucket", f'le=~"{accepted}|{accepted}[.]0"'] = below
        for (name, matcher), value in expected.items():
            series = f'spectap_spec_decode_{name}{{pod="{tap.name}",{matcher}}}'
            close(series, fleet.prometheus.value(f"sum({series})"), value)
        length = fleet.prometheus.value(
            f'1 + sum(spectap_spec_decode_accepted_tokens_per_step_sum{{pod="{tap.name}"}})'
            f' / sum(spectap_spec_decode_accepted_tokens_per_step_count{{pod="{tap.name}"}})'
        )
        close(f"{tap.name}: length", length, figures["spec_decode_token_weighted_acceptance_length"]["avg"])
        compared += len(expected) + 1
    return compared


def rules_with_records(fleet, observations):
    """The recorded figures of the whole fleet are those of all records. Gives how many were compared."""
    compared = 0
    for level, members, labels in [
        ("model", ("model",), ("model_name",)),
        ("model_tag", ("model", "tag"), ("model_name", "tag")),
    ]:
        for key, figures in by(observations, *members).items():
            where = ",".join(f'{label}="{value}"' for label, value in zip(labels, key))
            where = f'namespace="inference",{where}'
            expected = {
                f"{level}:spectap_steps:rate5m{{{where}}}": figures.steps,
                f"{level}:spectap_drafted_tokens:rate5m{{{where}}}": figures.drafted,
                f"{level}:spectap_accepted_tokens:rate5m{{{where}}}": figures.accepted,
                f"{level}:spectap_acceptance_length:ratio5m{{{where}}}": figures.length,
                f"{level}:spectap_draft_acceptance_rate:ratio5m{{{where}}}": figures.rate,
            }
            for position in range(4):
                series = f'{level}_position:spectap_survival:ratio5m{{{where},position="{position}"}}'
                expected[series] = figures.survival(position)
            for accepted in [*range(17), ">16"]:
                series = f'{level}_accepted:spectap_steps:ratio5m{{{where},accepted="{accepted}"}}'
                expected[series] = figures.share(accepted)
            if level == "model":
                expected[f"model:spectap_record_share:ratio5m{{{where}}}"] = figures.record_share
            for series, value in expected.items():
                close(series, fleet.prometheus.value(series), value)
            compared += len(expected)
    return compared


def evaluated_since(fleet, moment):
    """Whether every rule was evaluated after a moment."""
    groups = fleet.prometheus.ask("/api/v1/rules")["groups"]
    # Nanoseconds are more than `fromisoformat` takes.
    times = [rule["lastEvaluation"][:19] + "+00:00" for group in groups for rule in group["rules"]]
    return min(datetime.datetime.fromisoformat(time).timestamp() for time in times) > moment


def rules_are_healthy(fleet):
    """Every rule was evaluated without an error; gives the alerts that wait or fire, as (name, namespace)."""
    groups = fleet.prometheus.ask("/api/v1/rules")["groups"]
    waiting = set()
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["health"] == "ok", f"{rule['name']}: {rule.get('lastError') or rule['health']}"
        waiting |= {(rule["name"], alert["labels"].get("namespace")) for alert in rule.get("alerts", [])}
    return waiting
