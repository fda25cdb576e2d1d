"""Runs the full forms of the fault tests and prints one line for each.

    python -m tests.faults                      all tests
    python -m tests.faults kill flips           the named tests
    python -m tests.faults kill --count 20      20 cases of each test; --seed N draws other cases

The exit code is 0 only if every case passes. Each failed case is listed with the information needed to repeat it.
"""

import argparse
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from unittest import SkipTest

from attnlab.console.format import duration
from tests.faults import NAMES


def main() -> int:
    """Runs the named tests and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"one of {', '.join(NAMES)} (all)")
    parser.add_argument("--count", type=int, help="how many cases of each (as many as the full form has)")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn at random (0)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"{min(unknown)} is none of {', '.join(NAMES)}")
    failed = [name for name in options.names or NAMES if not _held(name, options.count, options.seed)]
    return 1 if failed else 0


def _held(name: str, count: int | None, seed: int) -> bool:
    """Runs a test, prints its line and returns whether every case passed. A skipped test counts as passed."""
    module, began = import_module(f"tests.faults.{name}"), time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"attnlab-{name}-") as folder:
        try:
            found = module.run(module.FULL if count is None else count, seed, Path(folder))
        except SkipTest as reason:
            print(f"{name:<14}  left out: {reason}", flush=True)
            return True
    print(f"{name:<14}  {found}, {duration(time.monotonic() - began)}", flush=True)
    for line in found.failures:
        print(f"    {line}", flush=True)
    return not found.failures


if __name__ == "__main__":
    sys.exit(main())
