"""What the check prints, and whether it passed."""


class Report:
    """Collects what was found different; says it at once and again at the end."""

    def __init__(self):
        self.passed, self.failures, self.loosely, self.place = 0, [], [], ""

    def heading(self, text):
        self.place = text
        print(f"\n== {text}", flush=True)

    def check(self, what, is_right, detail=""):
        """One promise: quiet in the list of equal bytes, one line otherwise."""
        if is_right:
            self.passed += 1
            print(f"   ok      {what}", flush=True)
        else:
            self.failures.append(f"{self.place}: {what}")
            print(f"   FAILED  {what}", flush=True)
            for line in detail.splitlines()[:40]:
                print(f"           {line}", flush=True)

    def loose(self, what):
        """Something was equal only with that left aside which vLLM did not do alike."""
        self.loosely.append(f"{self.place}: {what}")

    def table(self, what, columns):
        """Counts of several sides beside each other; they must all be equal."""
        keys = sorted({key for column in columns.values() for key in column}, key=str)
        first = next(iter(columns.values()))
        rows = [[" / ".join(key) if isinstance(key, tuple) else key for key in keys]]
        rows += [[str(column.get(key, 0)) for key in keys] for column in columns.values()]
        titles = [what, *columns]
        widths = [max(map(len, [title, *row])) for title, row in zip(titles, rows, strict=True)]
        lines = [titles, *zip(*rows, strict=True)]
        for line in lines:
            cells = [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]
            print("           " + "   ".join(cells), flush=True)
        equal = all(column.get(key, 0) == first.get(key, 0) for key in keys for column in columns.values())
        self.check(f"{what}: all sides equal", equal and bool(keys), "nothing was counted" if not keys else "")

    def end(self):
        """The last word, and the exit code."""
        print(
            f"\n{self.passed} checks passed, {len(self.loosely)} of them not to the byte since vLLM did not repeat itself,"
            f" {len(self.failures)} failed"
        )
        for failure in self.failures:
            print(f"   FAILED  {failure}")
        return 1 if self.failures or not self.passed else 0
