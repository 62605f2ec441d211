"""`python tests/deploy`: every test of this folder; with arguments, only modules or tests of these names."""

import sys
import unittest
from pathlib import Path

HERE = str(Path(__file__).parent)
sys.path.insert(0, HERE)
LOADER = unittest.defaultTestLoader
names = sys.argv[1:]
suite = LOADER.loadTestsFromNames(names) if names else LOADER.discover(HERE)
result = unittest.TextTestRunner(verbosity=1).run(suite)
for test, why in result.skipped:
    print(f"skipped: {test}: {why}", file=sys.stderr)
if result.testsRun == 0:
    print("no test ran", file=sys.stderr)
sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
