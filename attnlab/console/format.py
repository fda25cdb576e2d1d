"""Format numbers for reading: rates times a hundred, thousands separators, and suitable units."""

from __future__ import annotations

import math
from typing import Any

NONE = "–"
_POINTS = {"bleu", "chrf", "ap", "ap50"}  # rates that papers write without a percent sign
_EDITS = ("edit_rate", "phoneme_error_rate", "digit_error_rate")  # rates of edits can exceed 1
_LARGE = ((1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: Any) -> float | None:
    """Return the value if it is a finite number, else None. Files may contain anything.

    Numbers of 1e100 or more count as infinite, because differences and squares of such numbers are.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e100 else None


def is_band(value: Any) -> bool:
    """Return whether the value is a pair (least, most) in ascending order, where one end may be None.

    >>> is_band((0.1, 0.2)), is_band([None, 0.2]), is_band((0.2, 0.1)), is_band((None, None)), is_band(0.2)
    (True, True, False, False, False)
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    ends = [number(end) for end in value if end is not None]
    sound = [end for end in ends if end is not None and math.isfinite(end)]
    return bool(ends) and sound == sorted(sound) and len(sound) == len(ends)


def is_rate(metric: str) -> bool:
    """Return whether the metric is shown times a hundred. See `within` for its range.

    >>> is_rate("valid.exact_match"), is_rate("word_error_rate.de"), is_rate("bleu"), is_rate("loss")
    (True, True, True, False)
    """
    return any(part.endswith(("_rate", "match", "accuracy")) for part in metric.split(".")) or not percent(metric)


def within(metric: str, low: float, high: float) -> tuple[float, float]:
    """Clip an interval of a metric to the metric's possible values.

    A rate is in 0 … 1. A rate of edits, a distance and a cost in nats are at least 0. A perplexity is at least 1.
    Clipping does not change how often the interval covers the true mean, because what is cut off cannot be the true
    mean.

    >>> within("exact_match", -0.1, 1.1), within("word_edit_rate.de", -0.1, 1.1), within("loss", -0.1, 1.1)
    ((0.0, 1.0), (0.0, 1.1), (-0.1, 1.1))
    >>> within("valid.diversity", -0.1, 1.1), within("frechet.real", -0.1, 1.1)
    ((0.0, 1.0), (0.0, 1.1))
    >>> within("valid.perplexity", -3.0, 14.0), within("nats_per_character.1-64", -0.1, 2.1)
    ((1.0, 14.0), (0.0, 2.1))
    """
    parts = metric.split(".")
    if "diversity" in parts:
        return max(low, 0.0), min(high, 1.0)
    if "perplexity" in parts:
        return max(low, 1.0), high
    if "frechet" in parts or any("nats" in part.split("_") for part in parts):
        return max(low, 0.0), high
    if not is_rate(metric):
        return low, high
    return max(low, 0.0), high if is_open(metric) else min(high, 1.0)


def is_open(metric: str) -> bool:
    """Return whether the metric may exceed 1: it is a rate of edits or no rate at all."""
    return not is_rate(metric) or any(part.endswith(_EDITS) for part in metric.split("."))


def percent(metric: str) -> str:
    """Return the unit of a rate times a hundred: "%", or "" if papers write none.

    >>> percent("word_error_rate"), percent("bleu_tokenised_lower.0-10 words")
    ('%', '')
    """
    return "" if any(part.partition("_")[0] in _POINTS for part in metric.split(".")) else "%"


def title(metric: str) -> str:
    """Return a metric's name in words.

    >>> title("word_error_rate")
    'word error rate'
    """
    return metric.replace("_", " ")


def measure(metric: str, value: Any) -> str:
    """Format a value of a metric. A rate is shown times a hundred, with a second digit near 0 and 1.

    Other metrics are shown with three digits.

    >>> measure("exact_match", 0.99128), measure("exact_match", 0.9987), measure("bleu", 0.35), measure("loss", 0.01234)
    ('99.1%', '99.87%', '35.0', '0.0123')
    """
    value = number(value)
    if value is None:
        return NONE
    if not is_rate(metric):
        return significant(value, 3).replace("-", "−")
    digits = 2 if 0 < value < 0.005 or 0.995 < value < 1 else 1
    return f"{100 * value:.{digits}f}".replace("-", "−") + percent(metric)


def signed(metric: str, difference: float) -> str:
    """Format a difference of a metric with its sign, for rates in points. A nonzero difference gets enough digits.

    >>> signed("exact_match", -0.0213), signed("exact_match", -0.00041), signed("exact_match", 0.0), signed("loss", 2.5)
    ('−2.1', '−0.04', '0.0', '+2.50')
    """
    text = significant(difference, 3, "+")
    if is_rate(metric):
        # The rounding error between equal rates is not a difference.
        points = 100 * difference if abs(difference) > 1e-12 else 0.0
        text = f"{points:+.{max(1, -math.floor(math.log10(abs(points or 1))))}f}"
    return (text if float(text) else text.lstrip("+-")).replace("-", "−")


def apart(metric: str, low: float, high: float) -> tuple[str, str]:
    """Format both ends of an interval of a difference as `signed` does. Different ends never look the same.

    >>> apart("exact_match", 0.0098, 0.0103), apart("exact_match", -0.01, 0.02), apart("loss", 0.1234, 0.1235)
    (('+0.98', '+1.03'), ('−1.0', '+2.0'), ('+0.1234', '+0.1235'))
    """
    ends, digits = [signed(metric, low), signed(metric, high)], 1
    while ends[0] == ends[1] and low != high:
        digits += 1
        finer = [
            f"{100 * end:+.{digits}f}" if is_rate(metric) else significant(end, digits, "+") for end in (low, high)
        ]
        ends = [end.replace("-", "−") for end in finer]
    return ends[0], ends[1]


def span(metric: str, low: float, high: float) -> str:
    """Format an interval of a metric, clipped to possible values. Different ends never look the same.

    >>> span("exact_match", 0.981, 1.002), span("loss", 0.1, 0.25)
    ('98.1–100%', '0.100–0.250')
    """
    rate = is_rate(metric)
    low, high = within(metric, low, high)
    least = 3 if not rate else 2 if 0.99 < low < 1 or high < 0.01 else 1
    ends = ["", ""]
    for digits in range(least, 18):
        ends = [_trim(100 * end, digits) if rate else significant(end, digits) for end in (low, high)]
        if float(ends[0]) != float(ends[1]) or low == high:
            break
    return "–".join(ends).replace("-", "−") + (percent(metric) if rate else "")


def significant(value: float, digits: int, sign: str = "") -> str:
    """Format a number with `digits` significant digits, including trailing zeros. 0 is "0".

    `sign="+"` shows a plus sign.

    >>> significant(1.4997, 3), significant(0.25, 3, "+"), significant(120, 3), significant(0, 3)
    ('1.50', '+0.250', '120', '0')
    """
    return f"{value:{sign}#.{digits}g}".removesuffix(".") if value else "0"


def count(value: Any) -> str:
    """Format a whole number with thousands separators.

    >>> count(1234567)
    '1,234,567'
    """
    value = number(value)
    return NONE if value is None else f"{round(value):,}"


def large(value: Any, unit: str) -> str:
    """Format a number with three digits and a suitable prefix.

    >>> large(1.234e9, "FLOP"), large(16384, "B"), large(12, "B")
    ('1.23 GFLOP', '16.4 kB', '12 B')
    """
    value = number(value)
    if value is None:
        return NONE
    scale, prefix = next(((s, p) for s, p in _LARGE if abs(value) >= s), (1, ""))
    return f"{_three(value / scale)} {prefix}{unit}"


def duration(value: Any) -> str:
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


def _trim(value: float, digits: int) -> str:
    return "100" if value == 100 else "0" if value == 0 else f"{value:.{digits}f}"


def off(cost: float, target: float) -> str:
    """Format the deviation of a cost from its target, in percent.

    >>> off(98, 100), off(100.0001, 100)
    ('−2.00%', '+0.00%')
    """
    # Rounding first and adding 0.0 avoids −0.00.
    return f"{round(100 * (cost / target - 1), 2) + 0.0:+.2f}%".replace("-", "−")
