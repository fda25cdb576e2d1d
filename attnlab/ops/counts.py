"""Checks of numbers that a caller gives."""

import math
from numbers import Integral, Real


def check_counts(**given: object) -> None:
    """Checks that every value is an integer of at least 1; None is accepted.

    Raises:
      ValueError: for any other value. The message names the argument.
    """
    for name, value in given.items():
        if value is None:
            continue
        if not isinstance(value, Integral):
            raise ValueError(f"{name}={value!r} must be an integer")
        if int(value) < 1:
            raise ValueError(f"{name}={value!r} must be at least 1")


def check_positive(**given: object) -> None:
    """Checks that every value is a finite number above 0; None is accepted.

    Raises:
      ValueError: for any other value. The message names the argument.
    """
    for name, value in given.items():
        if value is not None and not (isinstance(value, Real) and 0 < float(value) < math.inf):
            raise ValueError(f"{name}={value!r} must be above 0 and finite")
