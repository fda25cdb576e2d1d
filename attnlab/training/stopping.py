"""When a lane is done before its last step: at a target, or after evaluations without a gain."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from attnlab.training.config import Train
from attnlab.training.state import State


def judge(train: Train, state: State, values: np.ndarray, higher: bool, preparing: int = 0) -> State:
    """The lanes after an evaluation that gave the headline metric `values` [lanes]; those that are done are stopped.

    Done is a lane that reached `train.target`, or that has not bettered its best for `train.patience` evaluations. It
    keeps the model of that evaluation, not that of its best one: so the loss of a run that stops is the last one seen,
    as where this rule was published (Schlag et al. 2021). A value that is not a number is no gain.
    Evaluations of the first `preparing` steps, which learn something else than what is scored, do not count.
    """
    sign = 1 if higher else -1
    merit = jnp.asarray(sign * np.asarray(values, np.float64), jnp.float32)
    better = merit > state.best
    waits = jnp.where(better, 0, state.waits + 1)
    counts = state.learns & (state.step > preparing)
    done = waits >= train.patience if train.patience else jnp.zeros_like(better)
    if train.target is not None:
        done |= merit >= jnp.float32(sign * train.target)
    return replace(
        state,
        best=jnp.where(counts & better, merit, state.best),
        waits=jnp.where(counts, waits, state.waits),
        stopped=jnp.where(counts & done, state.step, state.stopped),
    )
