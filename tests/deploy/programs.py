"""The programs that the tests run, and what becomes of a test whose program is missing: with CI=true it fails, elsewhere it
skips and names it."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Where `make test-deploy` puts a static binary.
SPECTAP = Path(os.environ.get("SPECTAP_TEST_BINARY", ROOT / ".work/deploy/image/spectap"))


def missing(what):
    """Ends the test that needs `what`."""
    if os.environ.get("CI") == "true":
        raise AssertionError(f"{what} is missing, and CI=true allows no skip")
    raise unittest.SkipTest(f"{what} is missing")


def program(name):
    """The path of a program, of this environment first."""
    own = Path(sys.executable).with_name(name)
    if own.exists():
        return str(own)
    return shutil.which(name) or missing(name)


def spectap():
    """The static binary."""
    return str(SPECTAP) if SPECTAP.exists() else missing(f"{SPECTAP} (make test-deploy builds it)")


def run(*command, **options):
    """Runs a command to its end; returns what it was, said, and its exit code."""
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run([str(word) for word in command], check=False, **options)
