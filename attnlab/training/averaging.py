"""The model that stands for a run: the last, the mean of the last few (Vaswani et al. 2017, 6.1), or the best."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp

from attnlab.training.config import Train
from attnlab.training.state import State
from attnlab.training.stopping import where_lane


def averaged_steps(train: Train) -> list[int]:
    """The steps whose models are averaged: `train.average` of them, within the last `train.average_steps`.

    They are steps at which a checkpoint is saved, as long as these lie so close together.
    """
    if not train.average:
        return []
    apart = train.save_every
    if train.average > 1:
        apart = min(apart, train.average_steps // (train.average - 1))
    return [*range(apart, train.steps, apart), train.steps][-train.average :]


def accumulate_mean(train: Train, state: State, step: int) -> State:
    """The lanes with their models of that step in the mean, where it is one of those counted."""
    steps = averaged_steps(train)
    if step not in steps:
        return state
    return replace(state, mean=_toward(state.mean, state.model, 1 / (1 + steps.index(step))))


def tested_model(train: Train) -> Literal["mean", "best", "last"]:
    """Which model of a lane is tested: the mean of several, the best on validation, or the last."""
    return "mean" if train.average else "best" if train.patience and train.restore_best else "last"


def averaged(train: Train, state: State, step: int) -> Any:
    """The model of every lane that would be tested if the run ended at that step.

    The mean, once there is one; the best on validation, where lanes go back to it and have one; else the last.
    """
    if state.best_model is not None:
        return where_lane(jnp.isfinite(state.best), state.best_model, state.model)
    return state.mean if any(step >= at for at in averaged_steps(train)) else state.model


@jax.jit
def _toward(mean: Any, model: Any, share: float) -> Any:
    return jax.tree.map(lambda old, new: (old + share * (new - old)).astype(old.dtype), mean, model)
