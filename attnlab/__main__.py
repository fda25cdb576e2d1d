"""The entry point of `attnlab` and `python -m attnlab`."""

import gc
from typing import NoReturn

from attnlab.cli.main import main
from attnlab.system import streams
from attnlab.system.signals import exit_process


def process() -> NoReturn:
    """Run the command line, and exit with its code."""
    streams.prepare()
    code = main()
    # The process is about to end. Without this, the garbage collector would search all objects for most of a second.
    gc.freeze()
    exit_process(code)


if __name__ == "__main__":
    process()
