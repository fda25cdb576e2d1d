"""The mean of the last checkpoints of a run, as its model (Vaswani et al. 2017, section 6.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from attnlab.training.config import Train
from attnlab.training.state import State


def counted(train: Train) -> list[int]:
    """The steps whose models are averaged: the last `train.average` of those at which a checkpoint is saved."""
    saved = [*range(train.save_every, train.steps, train.save_every), train.steps]
    return saved[-train.average :] if train.average else []


def include(train: Train, state: State, step: int) -> State:
    """The lanes with their models of that step in the mean, where it is one of those counted."""
    steps = counted(train)
    if step not in steps:
        return state
    return replace(state, mean=_toward(state.mean, state.model, 1 / (1 + steps.index(step))))


def chosen(train: Train, state: State, step: int) -> Any:
    """The model of every lane to go on with at that step: the mean, once there is one, else the last."""
    return state.mean if any(step >= at for at in counted(train)) else state.model


@jax.jit
def _toward(mean: Any, model: Any, share: float) -> Any:
    return jax.tree.map(lambda old, new: (old + share * (new - old)).astype(old.dtype), mean, model)
