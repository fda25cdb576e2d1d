from pathlib import Path

import pytest

from tests.mutations import BUGS, ROOT


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_what_a_seeded_bug_replaces_still_stands_there_once(bug):
    assert (ROOT / "attnlab" / bug.file).read_text().count(bug.right) == 1
    assert bug.wrong != bug.right
    assert all((ROOT / path).is_file() for path in bug.tests if Path(path).suffix == ".py")


def test_no_two_seeded_bugs_are_one():
    assert len({(bug.file, bug.right, bug.wrong) for bug in BUGS}) == len(BUGS) >= 25
