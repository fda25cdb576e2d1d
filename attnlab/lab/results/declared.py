"""The declarations of metrics in `result.json`, under `declared`: the unit, range and direction by name.

A range without an end has null there. `valid.NAME` in `metrics.jsonl` is the metric NAME on validation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attnlab.console.format import number
from attnlab.console.metric import Metric


def entries(metrics: Iterable[Metric]) -> dict[str, dict[str, str | float | bool | None]]:
    """Return the content of `declared` for these metrics.

    >>> entries([Metric("loss"), Metric("exact_match", "%", 0, 1, higher=True)])["exact_match"]
    {'unit': '%', 'low': 0, 'high': 1, 'higher': True}
    """
    return {
        each.name: {
            "unit": each.unit,
            "low": each.low if math.isfinite(each.low) else None,
            "high": each.high if math.isfinite(each.high) else None,
            "higher": each.higher,
        }
        for each in metrics
    }


def declared(result: Mapping[str, object], name: str) -> Metric:
    """Return the declaration of a metric in a `result.json`.

    A metric that the file does not declare has no unit and no range. Its direction is known for the primary metric.

    Raises:
        ValueError: The declaration is malformed.
    """
    listed = _listed(result)
    if name not in listed:
        return Metric(name, higher=name == result.get("metric") and result.get("higher") is True)
    entry = listed[name]
    if not isinstance(entry, dict) or not {"unit", "low", "high", "higher"} <= entry.keys():
        raise ValueError(f"metric {name!r}: must have the fields unit, low, high and higher")
    unit, higher = entry["unit"], entry["higher"]
    if not isinstance(unit, str) or not isinstance(higher, bool):
        raise ValueError(f"metric {name!r}: unit must be text, and higher must be true or false")
    low, high = (_end(entry[end], unbounded) for end, unbounded in (("low", -math.inf), ("high", math.inf)))
    if low is None or high is None:
        raise ValueError(f"metric {name!r}: low and high must be numbers or null")
    return Metric(name, unit, low, high, higher)


def check(result: Mapping[str, object]) -> None:
    """Raise ValueError if a declaration in a `result.json` is malformed. The message names it."""
    for name in _listed(result):
        declared(result, name)


def _listed(result: Mapping[str, object]) -> dict[str, object]:
    listed = result.get("declared", {})
    if not isinstance(listed, dict):
        raise ValueError("must be an object")
    return listed


def _end(value: object, unbounded: float) -> float | None:
    """Return an end of a range, or None if the value is no number."""
    return unbounded if value is None else number(value)
