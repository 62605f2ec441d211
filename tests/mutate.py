#!/usr/bin/env python3
"""Breaks each promise of docs/transparency.md, one at a time, and demands that its test fails.

    tests/mutate.py [--only ID] [--target DIR]

The faults are those of tests/mutations.toml. They are put in a copy of the sources (.work/mutations), so that nothing here
changes; the dependencies are those that are built already. Ends with 1 if a test passes although its promise is broken, or if
a fault does not compile.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST_RUN = 180


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", help="the id of a promise; may be repeated")
    parser.add_argument("--target", type=pathlib.Path, default=ROOT / "target", help="cargo's target folder")
    options = parser.parse_args()
    with open(ROOT / "tests" / "mutations.toml", "rb") as file:
        mutations = tomllib.load(file)["mutation"]
    if options.only:
        mutations = [one for one in mutations if one["id"] in options.only]
    copy = Copy(ROOT / ".work" / "mutations", options.target)
    bad = []
    for test in sorted({one["test"] for one in mutations}):
        result, _ = copy.run(test)
        if result != "passes":
            bad.append(f"{test}: {result} without any fault")
            print(f"   FAILED  {bad[-1]}", flush=True)
    for number, mutation in enumerate(mutations, 1):
        begin = time.monotonic()
        with copy.broken(mutation):
            result, output = copy.run(mutation["test"])
        took = time.monotonic() - begin
        print(f"{number:3}/{len(mutations)}  {mutation['id']}: {result} ({took:.0f} s)", flush=True)
        if result != "fails":
            bad.append(f"{mutation['id']}: {mutation['test']} {result}")
            print(output[-2000:] if result == "does not compile" else f"        {mutation['test']}", flush=True)
    print(f"\n{len(mutations)} faults, {len(bad)} of them not found")
    for line in bad:
        print(f"   FAILED  {line}")
    return 1 if bad or not mutations else 0


class Copy:
    """The sources as they stand, tracked or not, in a folder of their own."""

    def __init__(self, folder, target):
        self.folder, self.target = folder, target
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def broken(self, mutation):
        return Broken(self.folder / mutation["file"], mutation["old"], mutation["new"])

    def run(self, test):
        """Whether a test passes, fails or does not compile, and what was said."""
        file, name = test.split("::")
        parts = pathlib.PurePosixPath(file).with_suffix("").parts
        where = ["--lib"] if parts[0] == "src" else ["--test", parts[1]]
        modules = parts[1:] if parts[0] == "src" else parts[2:]
        command = ["cargo", "test", "--locked", "--all-features", "--target-dir", str(self.target), *where]
        built = self.call([*command, "--no-run"], None)
        if built.returncode:
            return "does not compile", built.stderr
        try:
            ran = self.call([*command, "--", "--exact", "::".join([*modules, name])], LONGEST_RUN)
        except subprocess.TimeoutExpired:
            return "fails", "it hangs"
        if "running 1 test" not in ran.stdout:
            return "is not there", ran.stdout
        return ("fails" if ran.returncode else "passes"), ran.stdout + ran.stderr

    def call(self, command, limit):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=limit)


class Broken:
    """A file with a fault in it, for as long as that is wanted."""

    def __init__(self, path, old, new):
        self.path, self.old, self.new = path, old, new

    def __enter__(self):
        self.text = self.path.read_text()
        if self.text.count(self.old) != 1:
            raise SystemExit(f"{self.path}: `{self.old}` must stand there once")
        self.path.write_text(self.text.replace(self.old, self.new))

    def __exit__(self, *_):
        self.path.write_text(self.text)


if __name__ == "__main__":
    sys.exit(main())
