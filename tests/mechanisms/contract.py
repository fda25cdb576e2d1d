"""Inputs for the contract tests of any mechanism and its extra inputs, and compiled calls of a mechanism.

Each call is compiled as a whole for a few shapes, with masks as arrays, so one program serves many cases. Inputs and
outputs are NumPy arrays, so slicing and comparing compile nothing. Tests of one mechanism run in one process
(`tests/groups.py`) and share its programs.
"""

from dataclasses import fields, replace
from functools import cache, wraps
from inspect import signature

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import mechanisms
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.inputs import shape_of
from attnlab.ops.mask import Full

K, V, N = 4, 6, 9  # width of keys and of values, and tokens of most sequences
BLOCKS = (None, 2)  # the mechanism's own block size, and one that gives several blocks and a shorter last one
EXACT = 1e-10  # float64: the forms compute the same sums in different orders

# Windows, blocks and ranks for sequences of a few tokens. With its default sizes, a mechanism would see all of them.
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


# Their own tests compare values and gradients with those of all pairs. Here all pairs are used, which compile faster.
SORTED = {"strided", "longformer", "bigbird", "reformer"}


def small(name, mechanism):
    """Returns the mechanism with sizes that a few tokens exceed."""
    held = {field.name for field in fields(mechanism) if getattr(mechanism, field.name) is not None}
    sizes = SIZES | ({"block": None} if name in SORTED else {})
    return replace(mechanism, **{field: size for field, size in sizes.items() if field in held})


SMALL = {name: small(name, mechanism) for name, mechanism in MECHANISMS.items()}


def group(names):
    """Parametrizes a test over mechanisms by name."""
    return pytest.mark.parametrize("name", names)


every = group(MECHANISMS)
stateful = group([name for name, mechanism in MECHANISMS.items() if mechanism.traits.decodes])


def near(a, b, tolerance=EXACT):
    """Checks that all numbers of two trees agree to `tolerance`."""
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=0, atol=tolerance)


def per_token(mechanism):
    """Returns the shapes of the extra inputs per key token and per query token."""
    return {**mechanism.tokens, **mechanism.queries}


def inputs(mechanism, T, S=None, seed=0, dtype=None):
    """Returns (q, k, v, extras) of standard normal numbers for T queries and S keys (T by default)."""
    S = T if S is None else S
    dtype = jnp.result_type(float) if dtype is None else dtype
    rng = np.random.default_rng(seed)
    # Drawn in float32 and cast, so that every precision sees the same numbers.
    draw = lambda *shape: rng.standard_normal(shape, np.float32).astype(dtype)
    q, k, v = draw(T, K), draw(S, K), draw(S, V)
    tokens = {n: draw(S, *shape_of(mechanism.tokens[n], K, V)) for n in sorted(mechanism.tokens)}
    tokens |= {n: draw(T, *shape_of(mechanism.queries[n], K, V)) for n in sorted(mechanism.queries)}
    return q, k, v, {**tokens, **{n: x.astype(dtype) for n, x in _learned(mechanism, seed).items()}}


@cache
def _learned(mechanism, seed):
    """Returns the initial learned arrays, and the constants of the last of two heads."""
    with jax.enable_x64(True):
        constants = jax.device_get({name: x[-1] for name, x in mechanism.heads(2).items()})
    with jax.enable_x64(False):
        return jax.device_get(mechanism.initial(jax.random.key(seed), K, V)) | constants


def cut(mechanism, extras, keys, queries=None):
    """Returns the extras of some keys and of some queries, which are those of the keys by default."""
    rows = dict.fromkeys(mechanism.tokens, keys) | dict.fromkeys(
        mechanism.queries, keys if queries is None else queries
    )
    return {name: value[rows[name]] if name in rows else value for name, value in extras.items()}


def spoil(x, keep, bad=jnp.nan):
    """Returns x with rows that are not kept replaced by `bad`."""
    return np.where(np.reshape(keep, (-1, *[1] * (x.ndim - 1))), x, x.dtype.type(bad))


def refusal(mechanism, mask, T=4, S=4):
    """Returns why the mechanism does not support a mask, or None if it does."""
    q, k, v, extra = inputs(mechanism, T, S)
    try:
        jax.eval_shape(lambda: mechanism.attend(q, k, v, mask, **extra))
    except NotImplementedError as why:
        return str(why)
    return None


def honoured(mechanism, mask, T=4, S=4):
    """Skips the test if the mechanism does not support the mask."""
    if why := refusal(mechanism, mask, T, S):
        pytest.skip(why)


def compiled(function):
    """Returns `function`, jitted. Its first argument and its `block` are static, and its results are NumPy arrays."""
    run = jax.jit(
        function, static_argnums=0, static_argnames=["block"] if "block" in signature(function).parameters else []
    )

    @wraps(function)
    def call(*args, **given):
        return jax.device_get(run(*args, **given))

    call.lower = run.lower
    return call


@compiled
def causal(mechanism, q, k, v, *, block=None, **given):
    """Runs `attnlab.mechanisms.causal`, compiled."""
    return mechanisms.causal(mechanism, q, k, v, block=block, **given)


@compiled
def attend(mechanism, q, k, v, mask=Full(), **given):
    """Runs `Mechanism.attend`, compiled."""
    return mechanism.attend(q, k, v, mask, **given)


@compiled
def weights(mechanism, q, k, mask=Full(), **given):
    """Runs `attnlab.mechanisms.weights`, compiled."""
    return mechanisms.weights(mechanism, q, k, mask, **given)


@compiled
def extend(mechanism, state, q, k, v, **given):
    """Runs `Mechanism.extend`, compiled."""
    return mechanism.extend(state, q, k, v, **given)


def _back(run, target, *arguments):
    """Returns the output of `run`, and the gradients of its product with `target`."""

    def value(*arguments):
        y = run(*arguments)
        return jnp.sum(y * target), y

    (_, y), gradients = jax.value_and_grad(value, argnums=tuple(range(len(arguments))), has_aux=True)(*arguments)
    return y, gradients


@compiled
def causal_back(mechanism, target, q, k, v, extra, *, block=None, **given):
    """Returns the output of `causal`, and the gradients of its product with `target` for q, k, v and the extras."""
    run = lambda q, k, v, extra: mechanisms.causal(mechanism, q, k, v, block=block, **given, **extra)
    return _back(run, target, q, k, v, extra)


@compiled
def attend_back(mechanism, target, q, k, v, extra, mask=Full(), **given):
    """Returns the output of `attend`, and the gradients of its product with `target` for q, k, v and the extras."""
    return _back(lambda q, k, v, extra: mechanism.attend(q, k, v, mask, **given, **extra), target, q, k, v, extra)


def packed(mechanism, target, *, block=None, keep=None, segment=None, bad=np.nan):
    """Returns (y, gradients) of a causal pass over N tokens, where tokens that are not kept are replaced by `bad`."""
    q, k, v, extra = inputs(mechanism, N)
    keep = np.ones(N, bool) if keep is None else np.asarray(keep)
    segment = np.zeros(N, np.int32) if segment is None else np.asarray(segment, np.int32)
    extra = {n: spoil(x, keep, bad) if n in per_token(mechanism) else x for n, x in extra.items()}
    q, k, v = (spoil(x, keep, bad) for x in (q, k, v))
    return causal_back(mechanism, target, q, k, v, extra, block=block, keep=keep, segment=segment)


def by_itself(mechanism, target, rows):
    """Returns (y, gradients) of a causal pass over some of those tokens alone."""
    q, k, v, extra = inputs(mechanism, N)
    return causal_back(mechanism, target[rows], q[rows], k[rows], v[rows], cut(mechanism, extra, rows))
