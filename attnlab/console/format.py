"""Format numbers for reading: thousands separators and suitable units. See `attnlab.console.metric` for metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "–"
_LARGE = ((1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: object) -> float | None:
    """Return the value if it is a finite number, else None. It may be any value that was read from a file.

    Numbers of 1e100 or more count as infinite, because differences and squares of such numbers are.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e100 else None


def is_band(value: object) -> bool:
    """Return whether the value is a pair (least, most) in ascending order, where one end may be None.

    >>> is_band((0.1, 0.2)), is_band([None, 0.2]), is_band((0.2, 0.1)), is_band((None, None)), is_band(0.2)
    (True, True, False, False, False)
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    ends = [number(end) for end in value if end is not None]
    sound = [end for end in ends if end is not None and math.isfinite(end)]
    return bool(ends) and sound == sorted(sound) and len(sound) == len(ends)


def significant(value: float, digits: int, sign: str = "") -> str:
    """Format a number with `digits` significant digits, including trailing zeros. 0 is "0".

    Args:
        value: The number.
        digits: The number of significant digits.
        sign: "+" also shows a plus sign. By default only a minus sign is shown.

    >>> significant(1.4997, 3), significant(0.25, 3, "+"), significant(120, 3), significant(0, 3)
    ('1.50', '+0.250', '120', '0')
    """
    return f"{value:{sign}#.{digits}g}".removesuffix(".") if value else "0"


def count(value: object) -> str:
    """Format a whole number with thousands separators.

    >>> count(1234567)
    '1,234,567'
    """
    value = number(value)
    return NONE if value is None else f"{round(value):,}"


def large(value: object, unit: str) -> str:
    """Format a number with three digits and a suitable prefix.

    >>> large(1.234e9, "FLOP"), large(16384, "B"), large(12, "B")
    ('1.23 GFLOP', '16.4 kB', '12 B')
    """
    value = number(value)
    if value is None:
        return NONE
    scale, prefix = next(((s, p) for s, p in _LARGE if abs(value) >= s), (1, ""))
    return f"{_three(value / scale)} {prefix}{unit}"


def duration(value: object) -> str:
    """Format seconds in a suitable unit.

    >>> duration(0.0382), duration(7.25), duration(431)
    ('38.2 ms', '7.25 s', '7 min 11 s')
    """
    value = number(value)
    if value is None:
        return NONE
    if value < 1:
        return f"{_three(1000 * value)} ms"
    if value < 60:
        return f"{_three(value)} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _three(value: float) -> str:
    # The format .3g alone would write 999.6 as 1e+03.
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def listing(items: Sequence[str], most: int = 8) -> str:
    """List items, separated by commas, at most `most` of them and how many more there are.

    >>> listing(["softmax", "linear"]), listing(["softmax", "linear", "delta"], most=1)
    ('softmax, linear', 'softmax and 2 more')
    """
    hidden = len(items) - most
    return ", ".join(items[:most]) + (f" and {hidden} more" if hidden > 0 else "")


def off(cost: float, target: float) -> str:
    """Format the deviation of a cost from its target, in percent.

    >>> off(98, 100), off(100.0001, 100)
    ('−2.00%', '+0.00%')
    """
    # Rounding first and adding 0.0 avoids −0.00.
    return f"{round(100 * (cost / target - 1), 2) + 0.0:+.2f}%".replace("-", "−")
