"""Counting what is equal and naming what is not."""


class Checks:
    """The findings of one case, to be printed together once it is over."""

    def __init__(self):
        self.lines, self.equal, self.differences = [], 0, []
        self.since = (0, 0)

    def same(self, what, got, wanted, tolerance=0.0):
        """One value beside what it has to be; numbers may differ by a relative tolerance."""
        both_numbers = is_number(got) and is_number(wanted)
        if got == wanted or (both_numbers and tolerance and abs(got - wanted) <= tolerance * abs(wanted)):
            self.equal += 1
        else:
            self.differences.append(f"{what}: {got!r}, expected {wanted!r}")

    def close(self, what, note=""):
        """Ends a group of checks: one line, and below it what differs."""
        equal, before = self.equal - self.since[0], self.since[1]
        differences = self.differences[before:]
        verdict = "DIFFERS" if differences else "equal  "
        if not (equal or differences):
            self.differences.append(f"{what}: nothing was compared")
            verdict = "EMPTY  "
        figures = f"{equal} figures" + (f"; {note}" if note else "")
        self.lines.append(f"   {verdict}  {what:<58} {figures}")
        self.lines += [f"            {line}" for line in differences[:12]]
        if len(differences) > 12:
            self.lines.append(f"            … {len(differences) - 12} more")
        self.since = (self.equal, len(self.differences))

    def say(self, line):
        """A line that passes no judgement."""
        self.lines.append(f"   {line}")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
