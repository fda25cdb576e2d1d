"""`attnlab`, and `python -m attnlab`: the command line as a process."""

from typing import NoReturn

from attnlab.cli import main
from attnlab.training.signals import end


def process() -> NoReturn:
    """Run the command line, and end with its exit code."""
    end(main())


if __name__ == "__main__":
    process()
