"""Inputs for any mechanism, whatever extras it declares: what the contract suite feeds."""

from functools import partial

import jax
import jax.numpy as jnp

from attnlab import mechanisms
from attnlab.mechanisms.base import shape_of
from attnlab.ops.mask import Full

K, V = 4, 6


def inputs(mechanism, T, S=None, seed=0, dtype=None):
    """(q, k, v, extras) of standard normal numbers: T queries, S keys (T if not given)."""
    S = T if S is None else S
    dtype = jnp.result_type(float) if dtype is None else dtype
    keys = jax.random.split(jax.random.key(seed), 5)
    # Drawn in float32 and cast, so that every precision sees the same numbers.
    draw = lambda key, shape: jax.random.normal(key, shape, jnp.float32).astype(dtype)
    q, k, v = draw(keys[0], (T, K)), draw(keys[1], (S, K)), draw(keys[2], (S, V))
    names = sorted(mechanism.tokens)
    tokens = {
        n: draw(key, (S, *shape_of(mechanism.tokens[n], K, V)))
        for n, key in zip(names, jax.random.split(keys[3], max(1, len(names))), strict=False)
    }
    learned = {n: x.astype(dtype) for n, x in mechanism.initial(keys[4], K, V).items()}
    return q, k, v, {**tokens, **learned}


def tokens_of(mechanism, extras):
    """The extras that come with key tokens."""
    return {name: value for name, value in extras.items() if name in mechanism.tokens}


def cut(mechanism, extras, rows):
    """The extras with their tokens restricted to some rows."""
    return {name: value[rows] if name in mechanism.tokens else value for name, value in extras.items()}


# Compiled whole: op by op, the suite would compile thousands of small programs.
@partial(jax.jit, static_argnums=0, static_argnames="block")
def causal(mechanism, q, k, v, **given):
    """`attnlab.mechanisms.causal`, jitted."""
    return mechanisms.causal(mechanism, q, k, v, **given)


@partial(jax.jit, static_argnums=0)
def attend(mechanism, q, k, v, mask=Full(), **given):
    """`Mechanism.attend`, jitted."""
    return mechanism.attend(q, k, v, mask, **given)


@partial(jax.jit, static_argnums=0)
def weights(mechanism, q, k, mask=Full(), **given):
    """`attnlab.mechanisms.weights`, jitted."""
    return mechanisms.weights(mechanism, q, k, mask, **given)


@partial(jax.jit, static_argnums=0)
def extend(mechanism, state, q, k, v, **given):
    """`Mechanism.extend`, jitted."""
    return mechanism.extend(state, q, k, v, **given)
