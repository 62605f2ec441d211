#!/usr/bin/env python3
"""Fails when a crate of the dependency tree has a licence that deny.toml does not allow.

Reads `cargo metadata` for the machine's own platform, so it needs nothing beyond cargo and Python 3.11.
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def is_allowed(expression, allowed):
    """Whether an SPDX expression can be satisfied by allowed licences alone."""
    # Some older crates write "MIT/Apache-2.0" for a choice.
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def peek():
        return words[position] if position < len(words) else None

    def take():
        nonlocal position
        position += 1
        return words[position - 1]

    def atom():
        if peek() == "(":
            take()
            value = choice()
            take()
            return value
        name = take()
        if peek() == "WITH":
            take()
            name = f"{name} WITH {take()}"
        return name in allowed

    def both():
        value = atom()
        while peek() == "AND":
            take()
            value = atom() and value
        return value

    def choice():
        value = both()
        while peek() == "OR":
            take()
            value = both() or value
        return value

    return choice()


def host():
    """The platform that this machine builds for."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"^host: (\S+)$", version, re.M).group(1)


def main():
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    run = subprocess.run(
        [*command, "--filter-platform", host()], cwd=ROOT, check=True, capture_output=True, text=True
    )
    packages = json.loads(run.stdout)["packages"]
    refused = [
        f"{package['name']} {package['version']}: {package['license'] or 'names no licence'}"
        for package in packages
        if not package["license"] or not is_allowed(package["license"], allowed)
    ]
    if refused:
        print("licences that deny.toml does not allow:", *refused, sep="\n  ", file=sys.stderr)
        return 1
    print(f"licences: {len(packages)} crates, all on the list of deny.toml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
