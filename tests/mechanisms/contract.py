"""What the contract suite feeds to any mechanism, whatever extras it declares, and how it calls it.

Calls are compiled whole and their masks are arrays of data: one program serves many cases. Tests of one mechanism run
in one process (`group`), so that they share those programs.
"""

from dataclasses import fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import mechanisms
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.base import shape_of
from attnlab.ops.mask import Full

K, V = 4, 6
EXACT = 1e-10  # float64: forms are the same sums in another order

# Windows, blocks and ranks for sequences of a few tokens: with those it comes with, a mechanism would see all of them.
SIZES = {
    "block": 4,
    "chunk": 4,
    "left": 3,
    "right": 2,
    "first": 1,
    "stride": 3,
    "size": 2,
    "picks": 1,
    "width": 3,
    "landmarks": 3,
    "rank": 3,
    "length": 160,
}


def small(mechanism):
    """The mechanism with sizes that a few tokens exceed."""
    held = {field.name for field in fields(mechanism) if getattr(mechanism, field.name) is not None}
    return replace(mechanism, **{name: size for name, size in SIZES.items() if name in held})


SMALL = {name: small(mechanism) for name, mechanism in MECHANISMS.items()}


# Each is another's code with another formula or number in it, which its own tests are about.
KIN = {"strided", "longformer", "bigbird", "taylor", "rebased", "hedgehog", "dpfp", "lightning", "gated-delta"}


def group(names):
    """Parametrise over mechanisms by name, each in a group of its own; kin of others are for the long run."""
    marks = lambda name: [pytest.mark.xdist_group(name), *([pytest.mark.slow] if name in KIN else [])]
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in names])


every = group(MECHANISMS)
stateful = group([name for name, mechanism in MECHANISMS.items() if mechanism.stateful])


def near(a, b, tolerance=EXACT):
    """All numbers of two trees agree to `tolerance`."""
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=0, atol=tolerance)


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


def spoil(x, keep, bad=jnp.nan):
    """X with what is not kept replaced by `bad`."""
    return jnp.where(jnp.asarray(keep).reshape(-1, *[1] * (x.ndim - 1)), x, bad)


def refusal(mechanism, mask, T=4, S=4):
    """Why the mechanism cannot honour a mask, or None where it can."""
    q, k, v, extra = inputs(mechanism, T, S)
    try:
        jax.eval_shape(lambda: mechanism.attend(q, k, v, mask, **extra))
    except NotImplementedError as why:
        return str(why)
    return None


def honoured(mechanism, mask, T=4, S=4):
    """Skip the test where the mechanism says that it cannot honour the mask."""
    if why := refusal(mechanism, mask, T, S):
        pytest.skip(why)


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


def _back(run, target, *arguments):
    """The answer of `run`, and the gradients of its product with `target`."""

    def value(*arguments):
        y = run(*arguments)
        return jnp.sum(y * target), y

    (_, y), gradients = jax.value_and_grad(value, argnums=tuple(range(len(arguments))), has_aux=True)(*arguments)
    return y, gradients


@partial(jax.jit, static_argnums=0, static_argnames="block")
def causal_back(mechanism, target, q, k, v, extra, *, block=None, **given):
    """`causal`, and the gradients of its product with `target` for q, k, v and the extras."""
    run = lambda q, k, v, extra: mechanisms.causal(mechanism, q, k, v, block=block, **given, **extra)
    return _back(run, target, q, k, v, extra)


@partial(jax.jit, static_argnums=0)
def attend_back(mechanism, target, q, k, v, extra, mask=Full(), **given):
    """`attend`, and the gradients of its product with `target` for q, k, v and the extras."""
    return _back(lambda q, k, v, extra: mechanism.attend(q, k, v, mask, **given, **extra), target, q, k, v, extra)
