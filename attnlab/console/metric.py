"""Metrics: what a number means, which values it can have, which direction is better, and how it is printed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from attnlab.console.format import NONE, number, significant


@dataclass(frozen=True)
class Metric:
    """A metric of a task.

    A rate is stored as a fraction and printed times a hundred, either with a percent sign or as points, as papers write
    BLEU. Any other metric is printed with three digits.
    """

    name: str
    """The name, for example "exact_match"."""
    unit: str = ""
    """The unit: "%" or "points" for a rate, else the unit that is printed with values, or ""."""
    low: float = -math.inf
    """The least possible value."""
    high: float = math.inf
    """The largest possible value."""
    higher: bool = False
    """Whether a higher value is better."""

    @property
    def is_rate(self) -> bool:
        """Whether values are fractions that are printed times a hundred."""
        return self.unit in ("%", "points")

    @property
    def percent(self) -> str:
        """What is printed after a rate: "%", or "" for points."""
        return "%" if self.unit == "%" else ""

    @property
    def title(self) -> str:
        """The name in words.

        >>> Metric("word_error_rate").title
        'word error rate'
        """
        return self.name.replace("_", " ")

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON. Infinite ends of the range are None."""
        return {name: None if value in (-math.inf, math.inf) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Metric:
        """Return the metric of a declaration that `to_json` returned.

        >>> accuracy = Metric("accuracy", "%", 0, 1, higher=True)
        >>> Metric.from_json(accuracy.to_json()) == accuracy
        True
        """
        low, high = (number(entry.get(name)) for name in ("low", "high"))
        ends = -math.inf if low is None else low, math.inf if high is None else high
        return cls(str(entry["name"]), str(entry.get("unit", "")), *ends, bool(entry.get("higher")))

    def clip(self, low: float, high: float) -> tuple[float, float]:
        """Clip an interval to possible values.

        This does not change how often the interval covers the true mean, because the mean cannot lie in what is cut
        off.

        >>> Metric("exact_match", "%", 0, 1).clip(-0.1, 1.1)
        (0.0, 1.0)
        """
        return max(low, float(self.low)), min(high, float(self.high))

    def format(self, value: Any) -> str:
        """Format a value. A rate has one digit after the point, and two near 0 and 1.

        >>> rate = Metric("exact_match", "%", 0, 1)
        >>> bleu, loss = Metric("bleu", "points"), Metric("loss")
        >>> rate.format(0.99128), rate.format(0.9987), bleu.format(0.35), loss.format(0.01234)
        ('99.1%', '99.87%', '35.0', '0.0123')
        """
        value = number(value)
        if value is None:
            return NONE
        if not self.is_rate:
            return significant(value, 3).replace("-", "−")
        digits = 2 if 0 < value < 0.005 or 0.995 < value < 1 else 1
        return f"{100 * value:.{digits}f}".replace("-", "−") + self.percent

    def format_difference(self, difference: float) -> str:
        """Format a difference with its sign, of rates in points. A nonzero difference gets enough digits.

        >>> rate = Metric("exact_match", "%")
        >>> [rate.format_difference(x) for x in (-0.0213, -0.00041, 0.0)], Metric("loss").format_difference(2.5)
        (['−2.1', '−0.04', '0.0'], '+2.50')
        """
        text = significant(difference, 3, "+")
        if self.is_rate:
            # The rounding error between equal rates is not a difference.
            points = 100 * difference if abs(difference) > 1e-12 else 0.0
            text = f"{points:+.{max(1, -math.floor(math.log10(abs(points or 1))))}f}"
        return (text if float(text) else text.lstrip("+-")).replace("-", "−")

    def format_difference_interval(self, low: float, high: float) -> tuple[str, str]:
        """Format both ends of an interval of a difference. Different ends never look the same.

        >>> rate, loss = Metric("exact_match", "%"), Metric("loss")
        >>> rate.format_difference_interval(0.0098, 0.0103), loss.format_difference_interval(0.1234, 0.1235)
        (('+0.98', '+1.03'), ('+0.1234', '+0.1235'))
        """
        ends, digits = [self.format_difference(low), self.format_difference(high)], 1
        while ends[0] == ends[1] and low != high:
            digits += 1
            finer = [
                f"{100 * end:+.{digits}f}" if self.is_rate else significant(end, digits, "+") for end in (low, high)
            ]
            ends = [end.replace("-", "−") for end in finer]
        return ends[0], ends[1]

    def format_interval(self, low: float, high: float) -> str:
        """Format an interval, clipped to possible values. Different ends never look the same.

        >>> Metric("exact_match", "%", 0, 1).format_interval(0.981, 1.002), Metric("loss").format_interval(0.1, 0.25)
        ('98.1–100%', '0.100–0.250')
        """
        low, high = self.clip(low, high)
        least = 3 if not self.is_rate else 2 if 0.99 < low < 1 or high < 0.01 else 1
        ends = ["", ""]
        for digits in range(least, 18):
            ends = [_trim(100 * end, digits) if self.is_rate else significant(end, digits) for end in (low, high)]
            if float(ends[0]) != float(ends[1]) or low == high:
                break
        return "–".join(ends).replace("-", "−") + self.percent


def _trim(value: float, digits: int) -> str:
    return "100" if value == 100 else "0" if value == 0 else f"{value:.{digits}f}"
