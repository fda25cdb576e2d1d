"""Batching rules that process a few heads at a time on a CPU, so that its caches hold them."""

from collections.abc import Callable
from math import prod

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, Shaped


def vmap_in_groups(function: Callable, room: int) -> Callable:
    """Makes a function that `jax.vmap` runs in groups of at most `room` examples, one group after another.

    On devices other than a CPU it returns `function` itself, and `jax.vmap` takes all examples at once.

    Args:
      function: any function of arrays.
      room: largest number of examples per group. Nested calls of `jax.vmap` share it.
    """
    if jax.default_backend() != "cpu":
        return function
    run = custom_vmap(function)

    @run.def_vmap
    def rule(count, batched, *args):
        axes = jax.tree.map(lambda moves: 0 if moves else None, batched)
        if not count:
            out = jax.vmap(function, axes)(*args)
            return out, jax.tree.map(lambda _: True, out)
        # The largest group that fits into the room and divides the number of examples.
        size = max(n for n in range(1, min(count, max(1, room)) + 1) if count % n == 0)
        flags, (leaves, tree) = jax.tree.leaves(batched), jax.tree.flatten(args)
        moving = [x.reshape(count // size, size, *x.shape[1:]) for x, moves in zip(leaves, flags, strict=True) if moves]

        def joined(some):
            """Rebuilds the arguments from one group of the batched leaves and the leaves without a batch axis."""
            its = iter(some)
            return jax.tree.unflatten(tree, [next(its) if moves else x for x, moves in zip(leaves, flags, strict=True)])

        def group(some):
            """Runs one group; an outer `jax.vmap` gets the room that is left."""
            if size == 1:  # drop the batch axis, because XLA fuses worse with an axis of size 1
                out = vmap_in_groups(function, room)(*joined([x[0] for x in some]))
                return jax.tree.map(lambda x: x[None], out)
            return vmap_in_groups(jax.vmap(function, axes), room // size)(*joined(some))

        out = (
            jax.lax.map(group, moving)
            if size < count
            else jax.tree.map(lambda x: x[None], group([x[0] for x in moving]))
        )
        out = jax.tree.map(lambda x: x.reshape(prod(x.shape[:2]), *x.shape[2:]), out)
        return out, jax.tree.map(lambda _: True, out)

    return run


def all_over_vmap(holds: Bool[Array, ""]) -> Bool[Array, ""]:
    """Returns `holds`; under `jax.vmap`, whether it holds for all examples.

    The result has no batch axis, so that a `cond` on it does not compute both branches.
    """
    return _for_all(jnp.all, holds)


def max_over_vmap(count: Int[Array, ""]) -> Int[Array, ""]:
    """Returns `count`; under `jax.vmap`, the largest of all examples, or 0 if there are none.

    The result has no batch axis, so that a loop of `count` iterations is not batched.
    """
    return _for_all(lambda counts, axis: jnp.max(counts, axis, initial=0), count)


def _for_all(join: Callable, x: Shaped[Array, ""]) -> Shaped[Array, ""]:
    """Returns x; under `jax.vmap`, x reduced over the batch axis by `join`."""
    run = custom_vmap(lambda x: x)

    @run.def_vmap
    def rule(count, batched, x):
        return _for_all(join, join(x, axis=0)), False

    return run(x)
