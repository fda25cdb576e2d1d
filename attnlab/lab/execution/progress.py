"""The choice of the progress display: a live line on a terminal, plain lines elsewhere."""

import sys
from typing import TextIO

from attnlab.lab.execution.log_lines import Plain
from attnlab.training.progress import Progress


def choose(stream: TextIO | None = None) -> "Progress":
    """Return a `Terminal` if the stream (default: standard error) is a terminal, else a `Plain`."""
    if not (stream or sys.stderr).isatty():
        return Plain(stream)
    from attnlab.lab.execution.live_bar import Terminal

    return Terminal()
