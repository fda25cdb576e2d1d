"""Metrics: what a number means, which values it can have, and which direction is better."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric of a task."""

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
