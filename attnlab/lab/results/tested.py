"""Describe which models of a run were tested, if they are not the last ones."""

from __future__ import annotations

import math

from attnlab.console.format import number
from attnlab.lab.results.declared import declared
from attnlab.lab.runs.run_folder import Record


def model_line(result: Record) -> str:
    """Return a sentence if a `result.json` has metrics of other models than the last ones, else "".

    The sentence also reports the metric of the last models.
    """
    kind, metric = result.get("tested_model"), declared(result, str(result.get("metric")))
    taken, last = (_mean(result.get(name), metric.name) for name in ("metrics", "last_metrics"))
    steps = [f"{step:,.0f}" for step in map(number, result.get("tested_steps") or []) if step is not None]
    if kind not in ("mean", "best") or taken is None or last is None or not steps:
        return ""
    if kind == "mean":
        which = f"the mean of {len(steps)} models (steps {steps[0]} to {steps[-1]})"
    else:
        which = f"the best model on validation (step {', '.join(steps)})"
    return f"{which} was tested: {metric.title} {metric.format(taken)}; the last model has {metric.format(last)}"


def _mean(metrics: object, metric: str) -> float | None:
    entry = metrics.get(metric) if isinstance(metrics, dict) else None
    mean = number(entry.get("mean")) if isinstance(entry, dict) else None
    return mean if mean is not None and math.isfinite(mean) else None
