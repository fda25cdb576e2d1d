"""Files of texts."""

import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """A function: the path of a file with this content."""

    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(tmp_path / name)

    return write
