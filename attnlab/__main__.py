"""`attnlab`, and `python -m attnlab`: the command line as a process."""

import gc
from typing import NoReturn

from attnlab.cli.main import main
from attnlab.system import streams
from attnlab.system.signals import end


def process() -> NoReturn:
    """Run the command line, and end with its exit code."""
    streams.prepare()
    code = main()
    # All that is held goes with the process. To look through it for cycles once more would take most of a second.
    gc.freeze()
    end(code)


if __name__ == "__main__":
    process()
