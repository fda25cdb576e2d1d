import os
import urllib.error
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """No test fetches anything, nor finds or leaves anything in the user's cache."""

    def refuse(*args, **kwargs):
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def published():
    """A function: the folder of a data set in $ATTNLAB_DATA; the test skips where it is not there."""

    def find(name: str) -> Path:
        root = os.environ.get("ATTNLAB_DATA")
        if not root or not (Path(root) / name).is_dir():
            pytest.skip(f"$ATTNLAB_DATA holds no {name}")
        return Path(root) / name

    return find
