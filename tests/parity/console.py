"""The Spec Decode section of a console: AIPerf's and spectap's by character, and the cells by the figures."""

import expected

COLUMNS = ("min", "max", "p99", "p90", "p50", "std")


def aiperf_section(text):
    """AIPerf's table and the line below it, without the title; empty where there is none."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if "LLM Metrics: Spec Decode" in line), None)
    if start is None:
        return []
    return until_blank(lines[start + 1 :])


def spectap_section(text):
    """The same of `spectap report`: the title, and what follows."""
    title, *lines = text.splitlines()
    return (title.strip(), until_blank(lines)) if lines else ("", [])


def until_blank(lines):
    end = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    return lines[:end]


def same(checks, theirs, report, exchanges):
    """spectap's section is AIPerf's; where AIPerf has none, spectap says in a sentence that there are no numbers."""
    title, ours = spectap_section(report)
    if not theirs:
        wanted = f"No acceptance numbers: {exchanges} exchanges"
        checks.same("what spectap report says without numbers", report[: len(wanted)], wanted)
        return
    checks.same("title", title, "Spec Decode")
    checks.same("number of lines", len(ours), len(theirs))
    for number, (own, other) in enumerate(zip(ours, theirs, strict=False)):
        checks.same(f"line {number + 1}", own, other)


def cells(checks, lines, tags, pool):
    """Each cell of a section is what the figures give, in two decimals; so are the order of rows and the last line."""
    rows = {}
    for line in lines:
        if line.startswith("│"):
            label, *row = (cell.strip() for cell in line.strip("│").split("│"))
            rows[label] = row
    wanted = {}
    for tag, label, unit, has_statistics in expected.ROWS:
        if figures := tags.get(tag):
            rest = [f"{figures[column]:,.2f}" for column in COLUMNS] if has_statistics else ["N/A"] * len(COLUMNS)
            # A label of more than 30 characters has its unit on the next line.
            wanted[label if len(label) > 30 else f"{label} ({unit})"] = [f"{figures['avg']:,.2f}", *rest]
    rows = {label: row for label, row in rows.items() if any(row)}
    checks.same("rows of the table", list(rows), list(wanted))
    for label, row in wanted.items():
        checks.same(f"row {label}", rows.get(label), row)
    last = [line.strip() for line in lines if line.strip().startswith("Accepted drafts per step")]
    checks.same("line below the table", last, [histogram_line(pool)] if pool else [])


def histogram_line(pool):
    """Shares in whole percent, each rounded alone; from 8 drafts on in one."""
    total, top = sum(pool.values()), max(map(int, pool))
    shown = min(top, 7)
    parts = [f"{kept}: {pool.get(str(kept), 0) / total * 100:.0f}%" for kept in range(shown + 1)]
    if top > shown:
        beyond = sum(count for kept, count in pool.items() if int(kept) > shown)
        parts.append(f">={shown + 1}: {beyond / total * 100:.0f}%")
    return "Accepted drafts per step (% of steps):  " + "   ".join(parts)
