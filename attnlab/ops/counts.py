"""Whole numbers that count something."""

from numbers import Integral
from typing import Any


def check_counts(**given: Any) -> None:
    """Raises ValueError, naming it, for what is no whole number of at least 1; None is left alone."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, Integral) and int(value) >= 1):
            raise ValueError(f"{name}={value!r} must be at least 1, and whole")
