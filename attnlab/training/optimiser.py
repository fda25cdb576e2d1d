"""The optimiser: Adam with decoupled weight decay, at a unit rate that each lane multiplies by its own."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from attnlab.training.config import Train


def optimiser(train: Train) -> optax.GradientTransformation:
    """Gradient to direction: clip by global norm, Adam, weight decay (Loshchilov and Hutter 2019).

    The learning rate is left out, because it differs by lane.
    """
    clip = optax.clip_by_global_norm(train.clip) if train.clip else optax.identity()
    return optax.chain(clip, optax.scale_by_adam(train.beta1, train.beta2), _weight_decay(train))


def _weight_decay(train: Train) -> optax.GradientTransformation:
    """Add `weight_decay` times the parameter, where it decays."""

    # Not optax's mask: it would put nodes of its own into modules.
    @optax.stateless
    def add(direction, model):
        shrink = lambda d, p, decays: d + train.weight_decay * p if decays or train.decay_all else d
        return jax.tree.map(shrink, direction, model, decays(model))

    return add


def decays(model: Any) -> Any:
    """Whether weight decay reaches each array of a model: a tree like it, of booleans.

    It spares the parts whose class says `decays = False`, such as `attnlab.modules.parameter.NoDecay`.
    """
    spared = lambda part: not getattr(part, "decays", True)
    return jax.tree.map(lambda part: jax.tree.map(lambda _: not spared(part), part), model, is_leaf=spared)


def schedule(train: Train) -> optax.Schedule:
    """Step to share of the peak learning rate: linear to 1 in `warmup` steps, then as `train.schedule` says."""
    if train.schedule == "cosine":
        # Counted from the peak, the end comes one step after the last: a step at rate 0 would be for nothing.
        after = optax.cosine_decay_schedule(1.0, max(1, train.steps - max(1, train.warmup) + 1), train.final_rate)
    elif train.schedule == "inverse_sqrt":
        start = max(1, train.warmup)
        after = lambda step: jnp.sqrt(start / (start + step))
    else:
        after = optax.constant_schedule(1.0)
    if not train.warmup:
        return after
    # From 1/warmup, not from 0: the first step should move.
    return optax.join_schedules(
        [optax.linear_schedule(1 / train.warmup, 1.0, train.warmup - 1), after], [train.warmup - 1]
    )
