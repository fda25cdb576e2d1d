from pathlib import Path

import pytest

from tests.mutations import BUGS, ROOT


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_text_replaced_by_a_seeded_bug_occurs_once(bug):
    assert (ROOT / "attnlab" / bug.file).read_text().count(bug.right) == 1
    assert bug.wrong != bug.right
    assert all((ROOT / path).is_file() for path in bug.tests if Path(path).suffix == ".py")


def test_seeded_bugs_are_distinct():
    assert len({(bug.file, bug.right, bug.wrong) for bug in BUGS}) == len(BUGS) >= 25
