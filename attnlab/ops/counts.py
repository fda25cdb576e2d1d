"""Checks of counts."""

from numbers import Integral
from typing import Any


def check_counts(**given: Any) -> None:
    """Checks that every value is an integer of at least 1; None is accepted.

    Raises:
      ValueError: for any other value. The message names the argument.
    """
    for name, value in given.items():
        if value is not None and not (isinstance(value, Integral) and int(value) >= 1):
            raise ValueError(f"{name}={value!r} must be at least 1, and whole")
