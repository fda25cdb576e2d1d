"""Groups of a metric whose names are numbers are sorted by their value."""

import re

from attnlab.lab.reporting.groups import groups
from attnlab.lab.results.estimates import Estimate
from tests.lab.made import outcome


def test_numeric_groups_are_sorted_by_value():
    found = outcome("a", [0.5, 0.6])
    for group in ("1024", "64", "0-10 words", "11-20 words", "128", "de"):
        found.metrics[f"exact_match.{group}"] = Estimate(0.5, None, None, (0.5,))
    table = str(groups([found])).split("As a table")[1]
    rows = re.findall(r'<th scope="row">(?:<[^>]*>)*([^<]*)', table)
    assert rows == ["0-10 words", "11-20 words", "64", "128", "1024", "de"]
