"""The optimiser: Adam with decoupled weight decay at a learning rate of 1. Each lane multiplies by its own rate."""

from typing import Literal, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PyTree

from attnlab.training.config import Train


@runtime_checkable
class NotDecayed(Protocol):
    """A part of a model to which weight decay does not apply, for example `attnlab.modules.parameter.NoDecay`."""

    decays: Literal[False]


def optimiser(train: Train, decayed: PyTree) -> optax.GradientTransformation:
    """Returns the transformation from gradients to update directions.

    It clips by the global norm, applies Adam and adds decoupled weight decay (Loshchilov and Hutter 2019). It does not
    apply a learning rate, because the rate differs between lanes.

    Args:
        train: The training configuration.
        decayed: Which parameters are decayed: 1 or 0 for each array of the parameters, or for each number in it.
    """
    clip = optax.clip_by_global_norm(train.clip) if train.clip else optax.identity()
    return optax.chain(clip, optax.scale_by_adam(train.beta1, train.beta2), _weight_decay(train, decayed))


def _weight_decay(train: Train, decayed: PyTree) -> optax.GradientTransformation:
    """Returns a transformation that adds `weight_decay` times the parameter, for parameters that are decayed."""
    if not train.weight_decay:
        return optax.identity()

    @optax.stateless
    def add(direction, parameters):
        rate = lambda each: train.weight_decay * (1 if train.decay_all else each)
        return jax.tree.map(lambda d, p, each: d + rate(each) * p, direction, parameters, decayed)

    return add


def decays(model: PyTree) -> PyTree:
    """Returns which arrays of a model are subject to weight decay, as a tree of booleans with the model's structure."""
    spared = lambda part: isinstance(part, NotDecayed) and not part.decays
    return jax.tree.map(lambda part: jax.tree.map(lambda _: not spared(part), part), model, is_leaf=spared)


def schedule(train: Train) -> optax.Schedule:
    """Returns the schedule of the learning rate as a fraction of its peak.

    The rate rises linearly to 1 within `train.warmup` steps, then follows `train.schedule`.
    """
    if train.schedule == "cosine":
        # The decay is counted from the peak and ends one step after the last: a step at rate 0 would be wasted.
        after = optax.cosine_decay_schedule(1.0, max(1, train.steps - max(1, train.warmup) + 1), train.final_rate)
    elif train.schedule == "inverse_sqrt":
        start = max(1, train.warmup)
        after = lambda step: jnp.sqrt(start / (start + step))
    else:
        after = optax.constant_schedule(1.0)
    if not train.warmup:
        return after
    # The warm-up starts at 1/warmup instead of 0, so that the first step has an effect.
    return optax.join_schedules(
        [optax.linear_schedule(1 / train.warmup, 1.0, train.warmup - 1), after], [train.warmup - 1]
    )
