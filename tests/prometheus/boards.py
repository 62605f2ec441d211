"""The queries of the dashboard, asked as Grafana asks them."""

import math

from agreement import close
from figures import Figures, by
from promql import dashboard, since, substituted, targets


def give_data(fleet, start, end, choices):
    """Every query gives data under these choices of the variables. Gives how many were asked."""
    board, asked = dashboard(), 0
    span = f"{math.ceil(end - start)}s"
    for panel, target in targets(board):
        expression = substituted(target["expr"], choices, whole_range=span)
        if target["instant"]:
            values = list(fleet.prometheus.query(expression, end).values())
        else:
            found = fleet.prometheus.range(expression, start, end)
            values = [value for points in found.values() for _, value in points]
        usable = [value for value in values if math.isfinite(value)]
        assert usable, f"{panel['title']}: no data for {expression}"
        asked += 1
    return asked


def variables_offer_values(fleet, start, end):
    """What the drop-down lists offer, by variable."""
    offered = {}
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] != "query":
            continue
        text = variable["query"]["query"]
        series, label = text.removeprefix("label_values(").removesuffix(")").rsplit(",", 1)
        found = fleet.prometheus.ask(
            f"/api/v1/label/{label.strip()}/values", **{"match[]": substituted(series, {}), "start": start, "end": end}
        )
        offered[variable["name"]] = found
    return offered


def figures_with_records(fleet, moment, observations, choices):
    """The figures at the top, the categories and the survival are those of the records since a moment."""
    board = dashboard()
    everything, by_tag = Figures(observations), by(observations, "tag")
    expected = {
        "Exchanges": everything.answered,
        "Verify steps": everything.steps,
        "Acceptance length": everything.length,
        "Acceptance rate": everything.rate,
        "Record share": everything.record_share,
        "Zero-step": everything.exchanges["zero_step"] / everything.answered,
    }
    compared = 0
    ask = lambda target: fleet.prometheus.query(since(substituted(target["expr"], choices), moment))
    for panel, target in targets(board):
        title = panel["title"]
        if panel["type"] == "stat" and title in expected:
            (value,) = ask(target).values()
            close(title, value, expected.pop(title))
            compared += 1
        elif title == "Survival by position":
            for labels, value in ask(target).items():
                close(title, value, everything.survival(int(dict(labels)["position"])))
                compared += 1
        elif title == "Categories":
            column = {"A": "answered", "B": "steps", "C": "length", "D": "rate"}[target["refId"]]
            found = {dict(labels).get("tag", ""): value for labels, value in ask(target).items()}
            assert found.keys() == {tag for (tag,) in by_tag}, found
            for (tag,), figures in by_tag.items():
                close(f"{tag}: {column}", found[tag], getattr(figures, column))
                compared += 1
    assert not expected, f"no panel shows {list(expected)}"
    return compared
