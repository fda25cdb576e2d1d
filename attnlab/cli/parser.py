"""The parser of a command's arguments, and the types of option values."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """An `argparse` parser with exact option names and one-line errors."""

    def __init__(self, prog: str, usage: str, description: str):
        super().__init__(prog, usage, description, allow_abbrev=False)
        self.add_argument("--debug", action="store_true", help="show the traceback of an error")

    def error(self, message: str) -> NoReturn:
        """Raise ValueError instead of printing the usage."""
        raise ValueError(f"{message}; see {self.prog} --help")


def step(text: str) -> int | str:
    """Parse a checkpoint: the number of a step, best or last."""
    if text in ("best", "last") or text.isdecimal():
        return int(text) if text.isdecimal() else text
    raise argparse.ArgumentTypeError(f"{text!r} must be the number of a step, best or last")


def integer(text: str) -> int:
    """Parse a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number") from None


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    if (found := integer(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be at least 1")
    return found


def number(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number") from None
