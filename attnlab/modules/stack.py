"""Stacks of layers: layers of one kind or of a repeating period, created as arrays with a layer axis, and scanned."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from attnlab.modules.block import SelfAttentionLayer
from attnlab.modules.dense import fold_key
from attnlab.modules.position import PositionEncoding
from attnlab.ops.varying import varying_like

Layer = TypeVar("Layer", bound=nnx.Module)


class Period(nnx.Module, Generic[Layer]):
    """Layers of different kinds that follow each other, each stacked over the repetitions of the period."""

    def __init__(self, layers: Sequence[Layer]):
        self.layers = nnx.List(layers)


def stack_layers(
    creates: Sequence[Callable[[PRNGKeyArray], Layer]], key: PRNGKeyArray, layers: int
) -> Layer | Period[Layer]:
    """Create `layers` modules as one whose arrays have a leading axis of layers, as `scan_layers` expects.

    Args:
        creates: The constructors of the layers of one period, called with a key. Layer n is made by constructor
            n modulo their number.
        key: Key for the initial parameters.
        layers: Number of layers, a multiple of the number of constructors.

    Returns:
        The stacked layers, or a `Period` of them if there are several constructors.
    """
    keys = [fold_key(key, str(n)) for n in range(layers)]
    stacked = [jax.vmap(create)(jnp.stack(keys[n :: len(creates)])) for n, create in enumerate(creates)]
    return stacked[0] if len(stacked) == 1 else Period(stacked)


def stacked_layers(layers: Layer | Period[Layer]) -> list[Layer]:
    """Return the stacked layers of each kind in a period."""
    return list(layers.layers) if isinstance(layers, Period) else [layers]


def unstack_layers(layers: Layer | Period[Layer]) -> list[Layer]:
    """Split the result of `stack_layers` into a list of layers, first to last."""
    kinds = []
    for stacked in stacked_layers(layers):
        leaves, kind = jax.tree.flatten(stacked)
        kinds.append([jax.tree.unflatten(kind, layer) for layer in zip(*leaves, strict=True)])
    return [layer for period in zip(*kinds, strict=True) for layer in period]


def first_values(
    layers: SelfAttentionLayer | Period, x: Float[Array, "T D"], places: Float[Array, "L T D"] | None = None
) -> Float[Array, "T F"] | None:
    """Return the projected values of the first layer, if a layer has a value residual, else None.

    Args:
        layers: Stacked layers, from `stack_layers`.
        x: Input of the first layer.
        places: Vectors to add to the inputs of each layer's self-attention.
    """
    kinds = stacked_layers(layers)
    if all(kind.attention.residual is None for kind in kinds):
        return None
    first = jax.tree.map(lambda leaf: leaf[0], kinds[0])
    return first.values(x, None if places is None else places[0])


def _stacked(*each: Array) -> Array:
    """Stack what the layers of a period return. If their numbers of heads differ, heads are repeated, so that they fit.

    The result then has the least common multiple of these numbers as its number of heads. Means over heads stay.
    """
    heads = math.lcm(*(len(one) for one in each))
    return jnp.stack([jnp.repeat(one, heads // len(one), axis=0) for one in each])


SHORT = 6  # up to this number of layers the scan is unrolled: a loop would cost more than it saves


def scan_layers(
    layers: nnx.Module,
    x: Float[Array, "T D"],
    *arguments: PyTree,
    key: PRNGKeyArray | None = None,
    places: Float[Array, "L T D"] | None = None,
    remat: bool = False,
    every: bool = False,
) -> tuple[Float[Array, "T D"], PyTree]:
    """Scan `layer(x, *arguments, key=key) -> (x, out)` over the layers, first to last.

    Args:
        layers: Stacked layers, from `stack_layers`.
        x: Input of the first layer.
        *arguments: Further arguments of every layer. Of a position encoding, each layer receives its own.
        key: Key for dropout, split among the layers. None means no dropout.
        places: Vectors to add to the inputs of each layer's self-attention: `place` of the layer. None: none.
        remat: Recompute each layer in the backward pass. That then needs the memory of one layer, and about a tenth
            more time.
        every: Also return the output of every layer.

    Returns:
        The output x of the last layer, and the outs of all layers stacked along a leading axis. With `every`, the
        second is a pair: the outputs x of all layers, stacked likewise, and the outs.
    """
    kinds = stacked_layers(layers)
    size, count = len(kinds), jax.tree.leaves(kinds[0])[0].shape[0]
    by_period = lambda rows: rows.reshape(count, size, *rows.shape[1:])
    keys = None if key is None else by_period(jax.random.split(key, size * count))
    places = None if places is None else by_period(places)

    of_layer = lambda each, n: each.of_layer(n) if isinstance(each, PositionEncoding) else each
    given = [[of_layer(each, n) for each in arguments] for n in range(size)]

    def up(x, here):
        layers, keys, places = here
        outs = []
        for n, layer in enumerate(layers):
            place = {} if places is None else {"place": places[n]}
            x, out = layer(x, *given[n], key=None if keys is None else keys[n], **place)
            outs.append((x, out) if every else out)
        return x, outs[0] if size == 1 else jax.tree.map(_stacked, *outs)

    # In an unrolled scan, common subexpression elimination would merge the recomputation with the forward pass, and
    # so undo remat. Inside a loop it cannot, and preventing it would only cost time.
    unroll = size * count <= SHORT
    up = jax.checkpoint(up, prevent_cse=unroll) if remat else up
    rows = kinds, keys, places
    x, outs = jax.lax.scan(up, varying_like(x, (rows, given)), rows, unroll=unroll)
    by_layer = lambda rows: rows.reshape(size * count, *rows.shape[2:])
    return x, outs if size == 1 else jax.tree.map(by_layer, outs)
