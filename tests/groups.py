"""Defines which tests share a process: those of one mechanism share programs, and those of one file share trained runs.

The group is derived from a test's id, because pytest-xdist 3.8 loses the marks `xdist_group` under pytest 9.2.
"""

import re

# Faults that are compared with the same uninterrupted run, which is trained once per process.
FAULTS = re.compile(r"tests/faults/test_faults\.py::\w+\[(kill|sigterm|trainers|surroundings)\]")
# A test of the contract. Its parameters are an optional number and the mechanism.
CONTRACT = re.compile(r"tests/mechanisms/test_contract_\w+\.py::\w+\[(?:(?:None|\d+)-)?(.+)\]")
# Folders with large files. A whole file could keep one process busy after the others are done.
LARGE = ("tests/mechanisms/", "tests/models/")

# Files that use the trained runs of another file.
SHARED = {
    "tests/lab/test_changed_runs.py": "tests/lab/test_launch.py",
    "tests/lab/trained/test_score_refusals.py": "tests/lab/trained/test_score.py",
}


def group(test: str) -> str:
    """Returns the group of a test by its id: its mechanism, its file, or its function in folders with large files."""
    if FAULTS.match(test):
        return "faults"
    if found := CONTRACT.match(test):
        return found[1]
    name = test.split("[" if test.startswith(LARGE) else "::")[0]
    return SHARED.get(name, name)
