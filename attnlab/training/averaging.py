"""The model that is tested for a run: the last, the best, or the mean of the last few (Vaswani et al. 2017, 6.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from attnlab.training.config import Train
from attnlab.training.state import State
from attnlab.training.stopping import where_lane


def averaged_steps(train: Train) -> list[int]:
    """Returns the steps whose models are averaged: `train.average` of them, within the last `train.average_steps`.

    They coincide with steps at which a checkpoint is saved, if these are close enough together.
    """
    if not train.average:
        return []
    interval = train.save_every
    if train.average > 1:
        interval = min(interval, train.average_steps // (train.average - 1))
    return [*range(interval, train.steps, interval), train.steps][-train.average :]


def accumulate_mean(train: Train, state: State, step: int) -> State:
    """Returns the state with its current models added to the mean, if `step` is one of `averaged_steps`.

    Args:
        train: The training configuration.
        state: The state of all lanes after `step`.
        step: The number of steps so far.
    """
    steps = averaged_steps(train)
    if step not in steps:
        return state
    return replace(state, mean=_toward(state.mean, state.model, 1 / (1 + steps.index(step))))


def tested_model(train: Train) -> Literal["mean", "best", "last"]:
    """Returns which model of a lane is tested: the mean of several, the best on the validation data, or the last."""
    return "mean" if train.average else "best" if train.patience and train.restore_best else "last"


def averaged(train: Train, state: State, step: int) -> PyTree:
    """Returns the model of every lane that would be tested if the run ended at `step`.

    This is the mean if there is one, the best model if best models are restored and the lane has one, and otherwise the
    last model.

    Args:
        train: The training configuration.
        state: The state of all lanes after `step`.
        step: The number of steps so far.
    """
    if state.best_model is not None:
        return where_lane(jnp.isfinite(state.best), state.best_model, state.model)
    return state.mean if any(step >= at for at in averaged_steps(train)) else state.model


@jax.jit
def _toward(mean: PyTree, model: PyTree, share: float) -> PyTree:
    return jax.tree.map(lambda old, new: (old + share * (new - old)).astype(old.dtype), mean, model)
