"""Roofline analysis of the operations of an experiment's model."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from attnlab.analysis.cost import operations
from attnlab.analysis.roofline import PUBLISHED, Kind, Machine, kinds
from attnlab.console.format import count, large
from attnlab.console.tables import columns
from attnlab.lab.planning.matching import Matched
from attnlab.lab.planning.precision import dtype_of
from attnlab.lab.study.experiment import Experiment
from attnlab.tasks.base.task import TaskData

MOST = 16  # kinds of operation that a table lists. The cost of the others is negligible


def placed(found: Matched, here: Machine) -> list[str]:
    """Return a roofline table for every variant: the operations of one forward pass of a batch, costliest first.

    Args:
        found: the experiments after matching.
        here: this machine. The published machines are shown next to it, if they have figures for the model's dtype.

    Returns:
        The lines of the tables.
    """
    lines = [
        "Operations of one forward pass of a batch. Each operation is counted with the bytes that it reads and writes."
    ]
    machines = {
        name: [here, *(each for each in PUBLISHED if each.dtype == dtype_of(experiment.model))]
        for name, experiment in found.experiments.items()
    }
    for each in dict.fromkeys(machine for listed in machines.values() for machine in listed):
        does = f"{large(each.flops, 'FLOP/s')} in {each.dtype} over {large(each.bandwidth, 'B/s')}"
        lines.append(f"{each.name}: {does}; compute-bound from {each.ridge:.3g} FLOP/B")
    for name, experiment in found.experiments.items():
        lines += ["", name, *table(forward(experiment, found.ledger.problem(experiment)), machines[name])]
    return lines


def forward(experiment: Experiment, problem: TaskData) -> list[Kind]:
    """Return the operations in the loss of one batch, from a trace."""
    model = jax.eval_shape(lambda: experiment.model.create(jax.random.key(0), problem.shape))
    batch = problem.batch(0, 0, experiment.train.batch_size)
    return kinds(operations(lambda model, batch: problem.loss(model, batch, jax.random.key(0)), model, batch))


def table(found: Sequence[Kind], machines: Sequence[Machine]) -> list[str]:
    """Return a table with a line per kind of operation: its count, its cost, and what limits it on each machine."""
    rows = [["  operation", "times", "FLOP", "bytes", "FLOP/B", *(each.name for each in machines)]]
    for kind in found[:MOST]:
        sides = [each.side(kind.intensity) if kind.flops else "memory" for each in machines]
        costs = [large(kind.flops, ""), large(kind.bytes, ""), f"{kind.intensity:.3g}"]
        rows.append([f"  {kind.name}", count(kind.count), *costs, *sides])
    lines = columns(rows, right=True)
    return lines if len(found) <= MOST else [*lines, f"  and {len(found) - MOST} more"]
