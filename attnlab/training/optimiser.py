"""The optimiser: Adam with decoupled weight decay, at a unit rate that each lane multiplies by its own."""

import jax.numpy as jnp
import optax

from attnlab.training.config import Train


def optimiser(train: Train) -> optax.GradientTransformation:
    """Gradient to direction: clip by global norm, Adam, weight decay (Loshchilov and Hutter 2019).

    The learning rate is left out, because it differs by lane.
    """
    clip = optax.clip_by_global_norm(train.clip) if train.clip else optax.identity()
    return optax.chain(
        clip, optax.scale_by_adam(train.beta1, train.beta2), optax.add_decayed_weights(train.weight_decay)
    )


def schedule(train: Train) -> optax.Schedule:
    """Step to share of the peak learning rate: linear to 1 in `warmup` steps, then as `train.schedule` says."""
    if train.schedule == "cosine":
        # Counted from the peak, zero comes one step after the last: a step at rate 0 would be for nothing.
        after = optax.cosine_decay_schedule(1.0, max(1, train.steps - max(1, train.warmup) + 1))
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
