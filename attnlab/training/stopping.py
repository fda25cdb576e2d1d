"""When a lane is done before its last step: at a target, or after evaluations without a gain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.training.config import Train
from attnlab.training.state import State


def early_stop(train: Train, state: State, values: np.ndarray, higher: bool, pretraining_steps: int = 0) -> State:
    """The lanes after an evaluation that gave the headline metric `values` [lanes]; those that are done are stopped.

    Done is a lane that reached `train.target`, or that has not bettered its best for `train.patience` evaluations. A
    value that is not a number is no gain. Where lanes go back to their best model, one that is as good or better is
    kept as `state.best_model`. Evaluations of the first `pretraining_steps` steps, which learn something else than
    what is scored, do not count.
    """
    sign = 1 if higher else -1
    merit = jnp.asarray(sign * np.asarray(values, np.float64), jnp.float32)
    better = merit > state.best
    waits = jnp.where(better, 0, state.evaluations_since_best + 1)
    counts = state.is_training & (state.step > pretraining_steps)
    done = waits >= train.patience if train.patience else jnp.zeros_like(better)
    if train.target is not None:
        done |= merit >= jnp.float32(sign * train.target)
    if state.best_model is not None:
        # Of equals the last: a metric that stands still, such as exact match at 0, says nothing against training.
        keep = counts & (merit >= state.best)
        model = where_lane(keep, state.model, state.best_model)
        at = jnp.where(keep, state.step, state.best_step)
        state = replace(state, best_model=model, best_step=at)
    return replace(
        state,
        best=jnp.where(counts & better, merit, state.best),
        evaluations_since_best=jnp.where(counts, waits, state.evaluations_since_best),
        stopped=jnp.where(counts & done, state.step, state.stopped),
    )


@jax.jit
def where_lane(chosen: Any, first: Any, second: Any) -> Any:
    """For each lane one of two trees of arrays that have lanes first: the first where `chosen` [lanes] is true."""
    pick = lambda a, b: jnp.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b)
    return jax.tree.map(pick, first, second)
