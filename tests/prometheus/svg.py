"""Draws panels as SVG: plain, and near enough to Grafana to show what a dashboard holds."""

import html
import math

COLORS = ["#3274d9", "#e0752d", "#56a64b", "#8f3bb8", "#e02f44", "#0fa3a3", "#a38a00", "#7a7f87"]
INK, FAINT, RULE = "#22252b", "#6c727b", "#d8dade"
ROW, COLUMN = 32, 54


def text(x, y, words, size=11, color=INK, anchor="start", weight="normal"):
    words = html.escape(str(words))
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def shown(value, unit, decimals=None):
    """A value as Grafana writes it in this unit."""
    if not math.isfinite(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.{1 if decimals is None else decimals}f}%"
    if unit == "s" and abs(value) < 1:
        return f"{1000 * value:.3g} ms"
    if unit == "bytes":
        return f"{value / 2**20:.1f} MiB"
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


class Frame:
    """The place of a panel with its title."""

    def __init__(self, panel):
        place = panel["gridPos"]
        self.x, self.y = place["x"] * COLUMN + 4, place["y"] * ROW + 4
        self.w, self.h = place["w"] * COLUMN - 8, place["h"] * ROW - 8
        self.panel = panel
        self.defaults = panel["fieldConfig"]["defaults"]
        self.unit, self.decimals = self.defaults.get("unit"), self.defaults.get("decimals")
        self.parts = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.w}" height="{self.h}" rx="3" fill="#fff" stroke="{RULE}"/>',
            text(self.x + 8, self.y + 16, panel["title"], 12, weight="bold"),
        ]

    def done(self):
        return "\n".join(self.parts)

    def nothing(self):
        self.parts.append(text(self.x + self.w / 2, self.y + self.h / 2, "no data", 12, FAINT, "middle"))


def stat(panel, value):
    frame = Frame(panel)
    words = shown(value, frame.unit, frame.decimals)
    frame.parts.append(text(frame.x + frame.w / 2, frame.y + frame.h / 2 + 22, words, 26, anchor="middle", weight="bold"))
    return frame.done()


def axes(frame, start, end, low, high, left=52):
    """Ticks and labels; gives what turns a point into a place."""
    x0, x1 = frame.x + left, frame.x + frame.w - 10
    y0, y1 = frame.y + frame.h - 46, frame.y + 30
    if high <= low:
        high = low + 1
    share = lambda value: min(1, max(0, (value - low) / (high - low)))
    place = lambda at, value: (x0 + (at - start) / (end - start) * (x1 - x0), y0 - share(value) * (y0 - y1))
    for step in range(5):
        value = low + (high - low) * step / 4
        _, y = place(start, value)
        frame.parts.append(f'<line x1="{x0}" x2="{x1}" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}"/>')
        frame.parts.append(text(x0 - 5, y + 4, shown(value, frame.unit), 10, FAINT, "end"))
    for step in range(4):
        at = start + (end - start) * step / 3
        x, _ = place(at, low)
        anchor = ["start", "middle", "middle", "end"][step]
        frame.parts.append(text(x, y0 + 14, f"{at - start:.0f} s", 10, FAINT, anchor))
    return place


def legend(frame, names):
    x, y = frame.x + 10, frame.y + frame.h - 10
    for index, name in enumerate(names):
        width = 20 + 6.2 * len(name)
        if x + width > frame.x + frame.w - 10 and index:
            return frame.parts.append(text(x, y, "…", 10, FAINT))
        color = COLORS[index % len(COLORS)]
        frame.parts.append(f'<rect x="{x:.1f}" y="{y - 7}" width="10" height="4" fill="{color}"/>')
        frame.parts.append(text(x + 14, y, name, 10))
        x += width


def lines(panel, series, start, end):
    """`series`: points by name."""
    frame = Frame(panel)
    stacked = frame.defaults["custom"].get("drawStyle") == "bars"
    values = [value for points in series.values() for _, value in points if math.isfinite(value)]
    if not values:
        frame.nothing()
        return frame.done()
    low = frame.defaults.get("min", min(values))
    top = max(values)
    if stacked:
        sums = {}
        for points in series.values():
            for at, value in points:
                sums[at] = sums.get(at, 0) + (value if math.isfinite(value) else 0)
        top = max(sums.values())
    place = axes(frame, start, end, low, frame.defaults.get("max", top * 1.08 if top > low else low + 1))
    below = {}
    for index, points in enumerate(series.values()):
        color = COLORS[index % len(COLORS)]
        if stacked:
            width = max(1.5, (place(start + 1, 0)[0] - place(start, 0)[0]) * 0.9)
            for at, value in points:
                if math.isfinite(value) and value > 0:
                    base = below.get(at, 0)
                    (x, y), (_, bottom) = place(at, base + value), place(at, base)
                    below[at] = base + value
                    frame.parts.append(
                        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{bottom - y:.1f}" fill="{color}"/>'
                    )
            continue
        path, before = "", None
        for at, value in points:
            if not math.isfinite(value):
                before = None
                continue
            x, y = place(at, value)
            path += f"{'L' if before is not None and at - before < 3 else 'M'}{x:.1f} {y:.1f}"
            before = at
        frame.parts.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>')
    legend(frame, list(series))
    return frame.done()


def dots(frame_panel, points, start, end, low, high):
    """Exemplars over a panel that `lines` drew with these limits."""
    frame = Frame(frame_panel)
    frame.parts = []
    x0, x1 = frame.x + 52, frame.x + frame.w - 10
    y0, y1 = frame.y + frame.h - 46, frame.y + 30
    for at, value in points:
        if start <= at <= end and low <= value <= high:
            x, y = x0 + (at - start) / (end - start) * (x1 - x0), y0 - (value - low) / (high - low) * (y0 - y1)
            frame.parts.append(f'<path d="M{x:.1f} {y - 4:.1f}l3 4l-3 4l-3 -4z" fill="{COLORS[3]}" opacity="0.6"/>')
    return frame.done()


def heatmap(panel, buckets, start, end):
    """`buckets`: points of each row, not cumulative, from the lowest."""
    frame = Frame(panel)
    rows = [(name, points) for name, points in buckets if any(value > 0 for _, value in points)]
    if not rows:
        frame.nothing()
        return frame.done()
    x0, x1 = frame.x + 52, frame.x + frame.w - 10
    y0, y1 = frame.y + frame.h - 46, frame.y + 30
    height = (y0 - y1) / len(rows)
    most = max(value for _, points in rows for _, value in points)
    width = (x1 - x0) / (end - start + 1)
    for index, (name, points) in enumerate(rows):
        y = y0 - (index + 1) * height
        frame.parts.append(text(x0 - 6, y + height / 2 + 4, name, 10, FAINT, "end"))
        for at, value in points:
            if value > 0:
                x = x0 + (at - start) * width
                shade = 0.12 + 0.88 * math.sqrt(value / most)
                frame.parts.append(
                    f'<rect x="{x:.1f}" y="{y + 0.5:.1f}" width="{width + 0.3:.1f}" height="{height - 1:.1f}" fill="#1f60c4" opacity="{shade:.2f}"/>'
                )
    for step in range(4):
        at = start + (end - start) * step / 3
        anchor = ["start", "middle", "middle", "end"][step]
        frame.parts.append(text(x0 + (at - start) * width, y0 + 14, f"{at - start:.0f} s", 10, FAINT, anchor))
    return frame.done()


def gauges(panel, values):
    """`values`: by name, in order."""
    frame = Frame(panel)
    x0, x1 = frame.x + 78, frame.x + frame.w - 60
    height = min(34, (frame.h - 44) / max(1, len(values)))
    for index, (name, value) in enumerate(values.items()):
        y = frame.y + 32 + index * height
        frame.parts.append(text(x0 - 6, y + height / 2 + 3, name, 11, FAINT, "end"))
        frame.parts.append(f'<rect x="{x0}" y="{y:.1f}" width="{x1 - x0}" height="{height - 6:.1f}" fill="#eef0f3"/>')
        frame.parts.append(
            f'<rect x="{x0}" y="{y:.1f}" width="{(x1 - x0) * min(1, value):.1f}" height="{height - 6:.1f}" fill="{COLORS[0]}"/>'
        )
        frame.parts.append(text(x1 + 8, y + height / 2 + 3, shown(value, frame.unit, frame.decimals), 11))
    return frame.done()


def table(panel, columns, rows):
    """`rows` of texts under these columns."""
    frame = Frame(panel)
    # Columns as wide as what stands in them.
    longest = [max(len(str(cell)) for cell in column) + 5 for column in zip(columns, *rows)]
    places = [frame.x + 10 + (frame.w - 20) * sum(longest[:index]) / sum(longest) for index in range(len(columns))]
    for x, name in zip(places, columns):
        frame.parts.append(text(x, frame.y + 40, name, 11, FAINT, weight="bold"))
    for number, row in enumerate(rows):
        y = frame.y + 62 + 22 * number
        if y > frame.y + frame.h - 4:
            break
        frame.parts.append(
            f'<line x1="{frame.x + 8}" x2="{frame.x + frame.w - 8}" y1="{y - 15}" y2="{y - 15}" stroke="{RULE}"/>'
        )
        frame.parts += [text(x, y, cell, 11) for x, cell in zip(places, row)]
    return frame.done()


def heading(panel):
    place = panel["gridPos"]
    return text(place["x"] * COLUMN + 6, place["y"] * ROW + 22, panel["title"], 14, weight="bold")


def page(title, parts, panels):
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * ROW + 44
    width = 24 * COLUMN
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -40 {width} {height}" font-family="Inter, Helvetica, Arial, sans-serif">\n'
        f'<rect y="-40" width="{width}" height="{height}" fill="#f4f5f7"/>\n{text(8, -14, title, 18, weight="bold")}\n{body}\n</svg>\n'
    )
