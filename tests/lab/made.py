"""Outcomes in memory, for tests that need no folder."""

from dataclasses import replace

from attnlab.lab.results.declared import entries
from attnlab.lab.results.estimates import Estimate
from attnlab.lab.results.outcome import Outcome
from attnlab.lab.statistics import summary
from tests.lab.metrics import declared


def outcome(name, values, metric="exact_match", higher=True, seeds=None, order=0, margin=None, **result):
    """Returns a finished variant with one metric and its `values` by seed. None stands for a non-finite value."""
    told = summary(values) if values and None not in values else {"mean": None, "low": None, "high": None}
    estimate = Estimate(told["mean"], told["low"], told["high"], tuple(values))
    seeds = list(range(len(values))) if seeds is None else seeds
    found = {"examples": 10_000, "metric": metric, "higher": higher, "seeds": seeds, "diverged": [], **result}
    found = {"declared": entries([replace(declared(metric), higher=higher)]), **found}
    experiment = {"margin": margin, "order": order}
    return Outcome(name, experiment, {}, found, {metric: estimate} if values else {}, [], (), (), order=order)
