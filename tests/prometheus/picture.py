"""Draws what the dashboard shows, from its own queries against a real Prometheus before taps under traffic.

    picture.py --spectap BINARY --work FOLDER --out FILE.svg
"""

import argparse
import contextlib
import itertools
import math
import pathlib
import random
import re
import time

import svg
from fleet import MODELS, Fleet
from promql import dashboard, substituted
from traffic import mixed, send_all

SECONDS = 90
MOST_DOTS = 120


def traffic(fleet):
    """A minute and a half of requests that come and go."""
    rng = random.Random(1)
    source = [itertools.chain.from_iterable(mixed(MODELS, 50, f"{tap.name} {turn}") for turn in range(1000)) for tap in fleet.taps]
    end = time.time() + SECONDS
    while time.time() < end:
        busy = 1 + math.sin(time.time() / 12) / 2
        chosen = [rng.randrange(len(source)) for _ in range(int(8 * busy))]
        send_all([(fleet.taps[index].data, *next(source[index])) for index in chosen], clients=4)
        if rng.random() < 0.2:
            fleet.send_faults()


def label(target, labels):
    form = target["legendFormat"]
    if form == "__auto":
        return " ".join(value for name, value in sorted(labels.items()) if name != "__name__")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), form).strip()


class Drawing:
    def __init__(self, prometheus, start, end):
        self.prometheus, self.start, self.end = prometheus, math.ceil(start), math.floor(end)

    def expression(self, target):
        return substituted(target["expr"], {}, rate_interval="8s", whole_range=f"{self.end - self.start}s")

    def instant(self, target):
        return {frozenset(labels): value for labels, value in self.prometheus.query(self.expression(target), self.end).items()}

    def series(self, targets):
        found = {}
        for target in targets:
            drawn = self.prometheus.range(self.expression(target), self.start, self.end)
            for labels, points in sorted(drawn.items(), key=lambda one: label(target, dict(one[0]))):
                found[label(target, dict(labels))] = points
        return found

    def panel(self, panel):
        return getattr(self, f"draw_{panel['type']}")(panel, panel.get("targets", []))

    def draw_row(self, panel, _):
        return svg.heading(panel)

    def draw_stat(self, panel, targets):
        (value,) = self.instant(targets[0]).values()
        return svg.stat(panel, value)

    def draw_timeseries(self, panel, targets):
        series = self.series(targets)
        drawn = svg.lines(panel, series, self.start, self.end)
        if any(target.get("exemplar") for target in targets):
            drawn += self.exemplars(panel, series)
        return drawn

    def exemplars(self, panel, series):
        found = self.prometheus.ask(
            "/api/v1/query_exemplars",
            query="spectap_spec_decode_acceptance_length_bucket",
            start=self.start,
            end=self.end,
        )
        points = sorted((one["timestamp"], float(one["value"])) for entry in found for one in entry["exemplars"])
        # As Grafana, not all of many that lie together.
        points = points[:: 1 + len(points) // MOST_DOTS]
        top = max(value for points in series.values() for _, value in points if math.isfinite(value)) * 1.08
        return svg.dots(panel, points, self.start, self.end, panel["fieldConfig"]["defaults"]["min"], top)

    def draw_heatmap(self, panel, targets):
        found = self.prometheus.range(self.expression(targets[0]), self.start, self.end)
        rows = sorted((float(dict(labels)["le"]), dict(points)) for labels, points in found.items())
        buckets, below = [], {}
        for bound, points in rows:
            name = f"{bound:.0f}" if math.isfinite(bound) else ">16"
            buckets.append((name, [(at, value - below.get(at, 0)) for at, value in sorted(points.items())]))
            below = points
        return svg.heatmap(panel, buckets, self.start, self.end)

    def draw_bargauge(self, panel, targets):
        found = sorted((label(targets[0], dict(labels)), value) for labels, value in self.instant(targets[0]).items())
        return svg.gauges(panel, dict(found))

    def draw_table(self, panel, targets):
        changes = panel["transformations"][-1]["options"]["renameByName"]
        names = sorted({name for target in targets for labels in self.instant(target) for name, _ in labels})
        values = [f"Value #{target['refId']}" if len(targets) > 1 else "Value" for target in targets]
        merged = {}
        for column, target in zip(values, targets):
            for labels, value in self.instant(target).items():
                merged.setdefault(labels, {})[column] = value
        units = {one["matcher"]["options"]: {p["id"]: p["value"] for p in one["properties"]} for one in panel["fieldConfig"]["overrides"]}

        def cell(column, value):
            how = units.get(changes[column], {})
            return svg.shown(value, how.get("unit"), how.get("decimals"))

        rows = []
        for labels, cells in sorted(merged.items(), key=lambda one: sorted(one[0])):
            known = dict(labels)
            rows.append([known.get(name, "") for name in names] + [cell(column, cells.get(column, math.nan)) for column in values])
        return svg.table(panel, [changes.get(name, name) for name in names + values], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectap", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        fleet = Fleet(stack, arguments.spectap, arguments.work)
        begun = time.time()
        traffic(fleet)
        drawing = Drawing(fleet.prometheus, begun, time.time())
        board = dashboard()
        parts = [drawing.panel(panel) for panel in board["panels"]]
        arguments.out.write_text(svg.page(board["title"], parts, board["panels"]))
        print(f"{arguments.out}: {len(parts)} panels and rows")


if __name__ == "__main__":
    main()
