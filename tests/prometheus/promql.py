"""Expressions of the rule files and of the dashboard, made ready to be asked in a test."""

import json
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "spectap.json"

OVER_TIME = re.compile(r"\b(?:rate|increase)\(([a-z_:]+(?:\{[^}]*\})?)\[[^\]]+\]\)")


def since(expression, moment):
    """The same with what counters gained since a moment in place of rates and increases.

    Those extrapolate by when each target happens to be scraped, so that two of them are equal only nearly. What is left of
    the expression, its sums, ratios, matchers and joins, must give exact figures.
    """
    return OVER_TIME.sub(rf"(\1 - (\1 @ {moment:.3f} or 0 * \1))", expression)


def rule_file(source, target, change, interval="1s"):
    """Writes rules whose expressions went through `change`, evaluated in this interval."""
    rules = yaml.safe_load(source.read_text())
    for group in rules["groups"]:
        group["interval"] = interval
        for rule in group["rules"]:
            rule["expr"] = change(rule["expr"])
    target.write_text(json.dumps(rules))
    return target


def dashboard():
    return json.loads(DASHBOARD.read_text())


def targets(board):
    """Panel and target of every query of a dashboard, also of panels inside a row."""
    for panel in board["panels"]:
        for inner in [panel, *panel.get("panels", [])]:
            for target in inner.get("targets", []):
                yield inner, target


def substituted(expression, values, rate_interval="4s", whole_range="60s"):
    """Replaces variables as Grafana does for Prometheus: a list becomes a group of escaped alternatives, All its own value."""
    times = {"__rate_interval": rate_interval, "__range": whole_range, "__interval": "1s"}

    def replace(found):
        name = found[1] or found[2]
        if name in times:
            return times[name]
        chosen = values.get(name, "$__all")
        if chosen == "$__all":
            return all_value(name)
        chosen = [chosen] if isinstance(chosen, str) else chosen
        escaped = [re.sub(r"([\\^$*+?.()|{}\[\]])", r"\\\\\1", one) for one in chosen]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"

    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", replace, expression)


def all_value(name):
    for variable in dashboard()["templating"]["list"]:
        if variable["name"] == name:
            return variable["allValue"]
    raise KeyError(f"the dashboard has no variable {name}")
