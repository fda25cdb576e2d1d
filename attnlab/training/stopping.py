"""Early stopping: a lane stops at a target, or after several evaluations without a new best."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree

from attnlab.training.config import Train
from attnlab.training.state import State


def early_stop(train: Train, state: State, values: np.ndarray, higher: bool, pretraining_steps: int = 0) -> State:
    """Updates the early-stopping state of all lanes after an evaluation.

    A lane stops if it reaches `train.target`, or if it has no new best score for `train.patience` evaluations. A value
    that is NaN never counts as a new best. If best models are restored, a model that is as good as the best or better
    is kept as `state.best_model`.

    Args:
        train: The training configuration.
        state: The state of all lanes.
        values: The primary metric of each lane, [lanes].
        higher: Whether a higher value is better.
        pretraining_steps: The number of first steps whose evaluations do not count, because these steps train another
            objective than the one that is scored.

    Returns:
        The new state.
    """
    sign = 1 if higher else -1
    selection_score = jnp.asarray(sign * np.asarray(values, np.float64), jnp.float32)
    better = selection_score > state.best
    waits = jnp.where(better, 0, state.evaluations_since_best + 1)
    counts = state.is_training & (state.step > pretraining_steps)
    done = waits >= train.patience if train.patience else jnp.zeros_like(better)
    if train.target is not None:
        done |= selection_score >= jnp.float32(sign * train.target)
    if state.best_model is not None:
        # Of equal scores the latest model is kept: a constant metric, for example exact match at 0, is no reason to
        # prefer an earlier model.
        keep = counts & (selection_score >= state.best)
        model = where_lane(keep, state.model, state.best_model)
        at = jnp.where(keep, state.step, state.best_step)
        state = replace(state, best_model=model, best_step=at)
    return replace(
        state,
        best=jnp.where(counts & better, selection_score, state.best),
        evaluations_since_best=jnp.where(counts, waits, state.evaluations_since_best),
        stopped=jnp.where(counts & done, state.step, state.stopped),
    )


@jax.jit
def where_lane(chosen: Bool[Array, " lanes"], first: PyTree, second: PyTree) -> PyTree:
    """Selects, for each lane, between two trees of arrays with a leading axis of lanes.

    Args:
        chosen: Whether to take the first tree, [lanes].
        first: The first tree.
        second: The second tree, with the same structure and shapes.

    Returns:
        A tree with the values of `first` where `chosen` [lanes] is true, else of `second`.
    """
    pick = lambda a, b: jnp.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b)
    return jax.tree.map(pick, first, second)
