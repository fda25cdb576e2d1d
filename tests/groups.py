"""Which tests share a process: those of one mechanism share programs, and those of some files share trained runs.

It is derived from a test's id, because pytest-xdist 3.8 loses the marks `xdist_group` under pytest 9.2.
"""

import re

# Files whose tests share a trained run or traced programs.
FILES = (
    "tests/lab/planning/test_matching.py",
    "tests/lab/reporting/test_page.py",
    "tests/lab/reporting/test_page_browser.py",
    "tests/lab/test_classification.py",
    "tests/lab/test_launch.py",
    "tests/lab/trained/test_history.py",
    "tests/lab/trained/test_inspect.py",
    "tests/lab/trained/test_score.py",
    "tests/system/test_settings.py",
)
# Faults that are compared with the same uninterrupted run, which is trained once per process.
FAULTS = re.compile(r"tests/faults/test_faults\.py::\w+\[(kill|sigterm|trainers|surroundings)\]")
# A test of the contract: its parameters are a number, if any, and the mechanism.
CONTRACT = re.compile(r"tests/mechanisms/test_contract_\w+\.py::\w+\[(?:(?:None|\d+)-)?(.+)\]")


def group(test: str) -> str:
    """The group of a test by its id; its own id where it shares nothing."""
    if FAULTS.match(test):
        return "faults"
    if found := CONTRACT.match(test):
        return found[1]
    file = test.split("::")[0]
    return file if file in FILES else test
