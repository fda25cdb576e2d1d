"""Declarations of the metrics that tests record."""

from dataclasses import replace

from attnlab.console.metric import Metric
from attnlab.tasks.base import metrics
from attnlab.tasks.base.task import LOSS

KNOWN = {each.name: each for each in (LOSS, *vars(metrics).values()) if isinstance(each, Metric)}


def declared(name: str) -> Metric:
    """Returns the declaration of a metric or of a part of it, as a task that reports it declares it."""
    whole = name.partition(".")[0]
    return replace(KNOWN[whole], name=name) if whole in KNOWN else Metric(name)
