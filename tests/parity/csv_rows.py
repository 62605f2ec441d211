"""Rows of a CSV: AIPerf's and spectap's by character, and both by the figures."""

import csv

import expected

COLUMNS = ["avg", "min", "max", "sum", *(f"p{percent}" for percent in expected.PERCENTILES), "std"]
HEADERS = [",".join(["Metric", *COLUMNS]), "Metric,Value"]

# What spectap's CSV has beside acceptance: rows that have to be equal, and rows of two clocks.
COUNTED = ["Output Sequence Length (tokens)", "Input Sequence Length (tokens)", "Request Count"]
TIMED = [
    "Time to First Token (ms)",
    "Inter Token Latency (ms)",
    "Inter Chunk Latency (ms)",
    "Request Latency (ms)",
    "Output Token Throughput (tokens/sec)",
    "Input Token Throughput (tokens/sec)",
    "Total Token Throughput (tokens/sec)",
    "Request Throughput (requests/sec)",
]


def name_of(label, unit):
    """The unit is left out where it only says what is counted."""
    return label if unit in ("count", "requests") else f"{label} ({unit})"


ACCEPTANCE = [name_of(label, unit) for _, label, unit, _ in expected.ROWS + expected.IN_FILES]


def blocks(text):
    """The lines of both blocks, whose ends are CRLF; names hold no comma, so a row's name is what stands before the first."""
    return [block.split("\r\n") for block in text.removesuffix("\r\n").split("\r\n\r\n")]


def same(checks, theirs, ours):
    """Row by row, block by block: what both count is equal to the character, and in the same order."""
    their_blocks, our_blocks = blocks(theirs), blocks(ours)
    checks.same("headers", [block[0] for block in our_blocks], HEADERS)
    checks.same("headers of AIPerf", [block[0] for block in their_blocks if block[0] in HEADERS], HEADERS)
    known = {*ACCEPTANCE, *COUNTED, *TIMED}
    if len(our_blocks) != len(HEADERS):
        return
    for number, header in enumerate(HEADERS):
        own = {line.split(",")[0]: line for line in our_blocks[number][1:]}
        other = next((block for block in their_blocks if block[0] == header), [header])
        other = {line.split(",")[0]: line for line in other[1:]}
        checks.same(f"rows of block {number + 1}", list(own), [name for name in other if name in known])
        for name in own.keys() & {*ACCEPTANCE, *COUNTED}:
            checks.same(f"row {name}", own[name], other.get(name))


def figures(checks, text, tags):
    """The acceptance rows are what the figures give, in two decimals; no other row of them is there."""
    rows = {row[0]: row[1:] for row in csv.reader(text.splitlines()) if row}
    for tag, label, unit, has_statistics in expected.ROWS + expected.IN_FILES:
        found = tags.get(tag)
        wanted = found and [f"{found[column]:.2f}" for column in (COLUMNS if has_statistics else ["avg"])]
        name = name_of(label, unit)
        checks.same(f"CSV row {name}", rows.get(name), wanted)
