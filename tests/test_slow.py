"""The list of the cases that run by default names tests that exist."""

import ast
from pathlib import Path

from tests.slow import DEFAULT, TOGETHER

TESTS = Path(__file__).parent


def test_every_entry_of_the_list_names_a_test():
    def known(entry):
        file, _, name = entry.partition("::")
        path = TESTS / file
        body = ast.parse(path.read_text()).body if path.is_file() else []
        return bool(body) and (not name or name in {each.name for each in body if isinstance(each, ast.FunctionDef)})

    assert [entry for entry in [*DEFAULT, *TOGETHER] if not known(entry)] == []
