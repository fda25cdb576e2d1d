"""The learned arrays of a mechanism, apart from the projections of queries, keys and values."""

from __future__ import annotations

from collections.abc import Mapping

import jax
from flax import nnx
from jaxtyping import Array, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay


def init_learned(mechanism: Mechanism, key: PRNGKeyArray, K: int, V: int, heads: int | None = None):
    """Create the learned arrays of a mechanism.

    Weight decay applies to arrays with two or more axes per head, which are matrices. It does not apply to the others,
    nor to matrices that the trait `undecayed` names, for example the decay rates of Mamba.

    Args:
        mechanism: The attention mechanism.
        key: Key of the module that holds the arrays.
        K: Size of a head's keys.
        V: Size of a head's values.
        heads: Number of heads, which becomes a leading axis. None: one set of arrays without that axis.

    Returns:
        An `nnx.Dict` of parameters by name.
    """
    key, start = fold_key(key, "learned"), lambda key: mechanism.initial(key, K, V)
    initial = start(key) if heads is None else jax.vmap(start)(jax.random.split(key, heads))
    axes = 0 if heads is None else 1
    spared = lambda name, value: value.ndim - axes < 2 or name in mechanism.traits.undecayed
    return nnx.Dict({name: (NoDecay if spared(name, x) else nnx.Param)(x) for name, x in initial.items()})


def extras(mechanism: Mechanism, learned: Mapping[str, nnx.Param], heads: int | None = None) -> dict[str, Array]:
    """Return a mechanism's arguments that do not depend on tokens: learned arrays, and constants that differ by head.

    Args:
        mechanism: The attention mechanism.
        learned: The result of `init_learned`.
        heads: Number of heads, as for `init_learned`.

    Returns:
        Arrays by name, with a leading axis of heads unless `heads` is None.
    """
    fixed = {name: x[0] for name, x in mechanism.heads(1).items()} if heads is None else mechanism.heads(heads)
    return {name: value[...] for name, value in learned.items()} | fixed
