"""Metrics: what a number means, which values it can have, which direction is better, and how it is printed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnlab.console.format import NONE, number, significant

UNITS = ("", "%", "points")


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric of a task.

    Raises:
        ValueError: A field has an impossible value. The message names the metric and the field.
    """

    name: str
    """The name, for example "exact_match"."""
    unit: str = ""
    """The unit: "%" or "points" for a fraction that is printed times a hundred, else ""."""
    low: float = -math.inf
    """The least possible value."""
    high: float = math.inf
    """The largest possible value."""
    higher: bool = False
    """Whether a higher value is better."""

    def __post_init__(self):
        if self.unit not in UNITS:
            raise ValueError(f"metric {self.name!r}: unit={self.unit!r} must be one of {', '.join(map(repr, UNITS))}")
        if not self.low < self.high:
            raise ValueError(f"metric {self.name!r}: low={self.low} must be below high={self.high}")

    @property
    def title(self) -> str:
        """The name in words.

        >>> Metric("word_error_rate").title
        'word error rate'
        """
        return self.name.replace("_", " ")

    @property
    def is_fraction(self) -> bool:
        """Whether values are printed times a hundred, and differences in points."""
        return self.unit != ""

    @property
    def sign(self) -> str:
        """What follows a printed value: "%", or "" if papers write no unit."""
        return "%" if self.unit == "%" else ""

    @property
    def width(self) -> float:
        """The largest possible difference between two values, which may be infinite."""
        return self.high - self.low

    @property
    def worst(self) -> float:
        """The worst possible value, which may be infinite."""
        return self.low if self.higher else self.high

    def clip(self, low: float, high: float) -> tuple[float, float]:
        """Clip an interval to the possible values.

        Clipping does not change how often the interval covers the true mean, because what is cut off cannot be the true
        mean.

        >>> Metric("exact_match", "%", 0, 1).clip(-0.1, 1.1), Metric("nats", low=0).clip(-0.1, 2.1)
        ((0, 1), (0, 2.1))
        """
        return max(low, self.low), min(high, self.high)

    def format(self, value: object) -> str:
        """Format a value. A fraction is printed times a hundred, with a second digit near 0 and 1.

        Other values are printed with three digits. What is not a finite number is printed as a dash.

        >>> match = Metric("exact_match", "%")
        >>> match.format(0.99128), match.format(0.9987), Metric("bleu", "points").format(0.35)
        ('99.1%', '99.87%', '35.0')
        >>> Metric("loss").format(0.01234)
        '0.0123'
        """
        value = number(value)
        if value is None:
            return NONE
        if not self.is_fraction:
            return significant(value, 3).replace("-", "−")
        digits = 2 if 0 < value < 0.005 or 0.995 < value < 1 else 1
        return f"{100 * value:.{digits}f}".replace("-", "−") + self.sign

    def format_tick(self, value: float) -> str:
        """Format a number along an axis.

        >>> Metric("exact_match", "%").format_tick(0.5), Metric("loss").format_tick(0.5)
        ('50%', '0.5')
        """
        return f"{100 * value:.4g}{self.sign}" if self.is_fraction else f"{value:.4g}"

    def format_difference(self, difference: float) -> str:
        """Format a difference with its sign, of fractions in points. A nonzero difference gets enough digits.

        >>> match = Metric("exact_match", "%")
        >>> match.format_difference(-0.0213), match.format_difference(-0.00041), match.format_difference(0.0)
        ('−2.1', '−0.04', '0.0')
        >>> Metric("loss").format_difference(2.5)
        '+2.50'
        """
        text = significant(difference, 3, "+")
        if self.is_fraction:
            # The rounding error between equal fractions is not a difference.
            points = 100 * difference if abs(difference) > 1e-12 else 0.0
            text = f"{points:+.{max(1, -math.floor(math.log10(abs(points or 1))))}f}"
        return (text if float(text) else text.lstrip("+-")).replace("-", "−")

    def format_difference_interval(self, low: float, high: float) -> tuple[str, str]:
        """Format both ends of an interval of a difference, clipped to `width`. Different ends never look the same.

        >>> match = Metric("exact_match", "%", 0, 1)
        >>> match.format_difference_interval(0.0098, 0.0103), match.format_difference_interval(-1.2, 0.02)
        (('+0.98', '+1.03'), ('−100.0', '+2.0'))
        >>> Metric("loss").format_difference_interval(0.1234, 0.1235)
        ('+0.1234', '+0.1235')
        """
        low, high = max(low, -self.width), min(high, self.width)
        ends, digits = [self.format_difference(low), self.format_difference(high)], 1
        while ends[0] == ends[1] and low != high:
            digits += 1
            finer = [
                f"{100 * end:+.{digits}f}" if self.is_fraction else significant(end, digits, "+") for end in (low, high)
            ]
            ends = [end.replace("-", "−") for end in finer]
        return ends[0], ends[1]

    def format_interval(self, low: float, high: float) -> str:
        """Format an interval, clipped to possible values. Different ends never look the same.

        >>> Metric("exact_match", "%", 0, 1).format_interval(0.981, 1.002), Metric("loss").format_interval(0.1, 0.25)
        ('98.1–100%', '0.100–0.250')
        """
        low, high = self.clip(low, high)
        least = 3 if not self.is_fraction else 2 if 0.99 < low < 1 or high < 0.01 else 1
        ends = ["", ""]
        for digits in range(least, 18):
            ends = [_percent(end, digits) if self.is_fraction else significant(end, digits) for end in (low, high)]
            if float(ends[0]) != float(ends[1]) or low == high:
                break
        return "–".join(ends).replace("-", "−") + self.sign

    def format_size(self, size: float) -> str:
        """Format the size of a difference without a sign, of fractions in points.

        >>> Metric("exact_match", "%").format_size(0.015), Metric("bleu", "points").format_size(0.01)
        ('1.5 points', '1 point')
        >>> Metric("loss").format_size(0.02)
        '0.02'
        """
        if not self.is_fraction:
            return f"{size:.3g}"
        points = f"{100 * size:.{2 if size < 0.1 else 3}g}"
        return f"{points} point{'s' * (points != '1')}"


def _percent(value: float, digits: int) -> str:
    return "100" if value == 1 else "0" if value == 0 else f"{100 * value:.{digits}f}"
