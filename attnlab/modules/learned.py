"""What a mechanism learns besides projections: one set of arrays, or one a head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from flax import nnx
from jaxtyping import Array, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay


def init_learned(mechanism: Mechanism, key: PRNGKeyArray, K: int, V: int, heads: int | None = None) -> Any:
    """The learned arrays of a mechanism, from the key of a module; with a leading axis of heads, if it has several.

    Weight decay reaches those that have two or more axes for one head: matrices, not the constants of gates.
    """
    key, start = fold_key(key, "learned"), lambda key: mechanism.initial(key, K, V)
    started = start(key) if heads is None else jax.vmap(start)(jax.random.split(key, heads))
    axes = 0 if heads is None else 1
    kind = lambda value: nnx.Param if value.ndim - axes >= 2 else NoDecay
    return nnx.Dict({name: kind(value)(value) for name, value in started.items()})


def extras(mechanism: Mechanism, learned: Mapping[str, Any], heads: int | None = None) -> dict[str, Array]:
    """What a call is given besides its tokens: the learned arrays, and what differs by head.

    Both with a leading axis of heads; for one head (`heads` None) without it.
    """
    fixed = {name: x[0] for name, x in mechanism.heads(1).items()} if heads is None else mechanism.heads(heads)
    return {name: value[...] for name, value in learned.items()} | fixed
