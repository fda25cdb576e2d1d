"""How many processes finish a study soonest."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import jax

from attnlab.lab.execution.worker_input import sources
from attnlab.lab.planning.plan import Plan
from attnlab.lab.runs.identity import environment_of
from attnlab.system.cores import cores
from attnlab.system.memory import available_memory

STEP = 10e9
"""FLOPs of a training step, all lanes together, that one core computes as fast per core as several do.

Measured on two cores: the variants of `experiments/dates.py`, with 4 GFLOP per step, train for 304 s one after the
other, and for 229 s side by side. With 20 GFLOP per step, a language model of width 256, one process takes 122 s and
two take 130.
"""
VARIANT = 1e12  # FLOPs of a variant below which starting a process takes longer than it saves
MEMORY = 2 * 2**30  # bytes of a process


def worker_count(plans: Sequence[Plan]) -> int:
    """Return the number of processes that train the unfinished variants soonest.

    It is 1 on an accelerator, if the variants have equal times as their budget, which a second process would disturb,
    if a variant takes only seconds, and if an experiment uses classes that another process cannot import. Otherwise
    each process has a variant, enough memory, and a core for every 10 GFLOP of a step. A variant that has begun is
    resumed with as many cores as before.

    Args:
        plans: the plans of all variants.
    """
    waiting = [plan for plan in plans if plan.done is None]
    if not waiting or len(plans) < 2 or jax.default_backend() != "cpu" or len(jax.devices()) > 1:
        return 1
    if any(plan.study.budget == "seconds" or plan.step_flops is None for plan in waiting):
        return 1
    begun = [
        environment_of(plan.folder).get("cores") for plan in waiting if (plan.folder.path / "checkpoints").exists()
    ]
    if known := [count for count in begun if count]:
        return max(1, len(cores()) // min(known))
    steps = [plan.step_flops or 0 for plan in waiting]
    if max(flops * plan.experiment.train.steps for flops, plan in zip(steps, waiting, strict=True)) < VARIANT:
        return 1
    try:
        sources(waiting)
    except ValueError:
        return 1
    needed = max(1, ceil(max(steps) / STEP))
    return max(1, min(len(plans), len(cores()) // needed, available_memory() // MEMORY))
