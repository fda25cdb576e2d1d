"""Checks of counts."""

from numbers import Integral


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
