"""The browser in which pages are tested."""

import pytest

from tests.lab.reporting.browser import Browser, program


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    path = program()
    if path is None:
        pytest.skip("no Chromium on this machine")
    found = Browser(path, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()
