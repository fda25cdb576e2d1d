"""The choice of the progress display: a live line on a terminal, one in a notebook, plain lines elsewhere."""

import sys
from typing import Protocol, TextIO, runtime_checkable

from attnlab.lab.execution.log_lines import Plain
from attnlab.training.progress import Progress, Silent


@runtime_checkable
class _KernelShell(Protocol):
    """A shell of IPython that runs in a kernel, not on a terminal."""

    kernel: object


def choose(stream: TextIO | None = None) -> Progress:
    """Return a `Terminal` if the stream (default: standard error) is a terminal, else a `Plain`."""
    if not (stream or sys.stderr).isatty():
        return Plain(stream)
    from attnlab.lab.execution.live_bar import Terminal

    return Terminal()


def default_progress() -> Progress:
    """Return the default progress of a run in Python: a `Notebook` in an IPython kernel, else `Silent`."""
    # A running kernel has imported IPython already.
    if "IPython" not in sys.modules:
        return Silent()
    from IPython import get_ipython

    shell = get_ipython()
    if not isinstance(shell, _KernelShell) or shell.kernel is None:
        return Silent()
    from attnlab.lab.execution.notebook import Notebook

    return Notebook()
