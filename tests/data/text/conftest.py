"""Fixtures that write files of texts."""

import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a file with the given content and returns its path."""

    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(tmp_path / name)

    return write
