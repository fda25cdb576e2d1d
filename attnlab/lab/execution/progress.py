"""Which listener a run tells of its progress: a live line on a terminal, plain lines elsewhere."""

import sys
from typing import TextIO

from attnlab.lab.execution.log_lines import Plain
from attnlab.training.progress import Progress


def choose(stream: TextIO | None = None) -> "Progress":
    """`Terminal` where the stream (standard error) is one, `Plain` elsewhere."""
    if not (stream or sys.stderr).isatty():
        return Plain(stream)
    from attnlab.lab.execution.live_bar import Terminal

    return Terminal()
