"""Carries of loops inside `jax.shard_map`."""

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, PyTree


def varying_like(carry: PyTree, like: PyTree) -> PyTree:
    """Returns the first carry of a loop, marked as different on each device where `like` is.

    Inside `jax.shard_map`, jax knows over which axes of the mesh an array varies. A carry that starts with constants,
    such as an empty memory, varies over none, and over some after one round, which `jax.lax.scan` refuses.

    Args:
      carry: the carry, a tree of arrays.
      like: the arrays that the loop combines with its carry, in a tree.

    Returns:
      The carry with the same values. Outside `jax.shard_map` it is `carry` itself.
    """
    axes = frozenset[str]().union(*map(_axes, jax.tree.leaves((carry, like))))
    return jax.tree.map(lambda x: _varying(x, axes), carry) if axes else carry


def _axes(x: object) -> frozenset[str]:
    """Returns the axes over which a leaf of a tree varies. Only traced arrays vary."""
    return jax.typeof(x).manual_axis_type.varying if isinstance(x, Tracer) else frozenset()


def _varying(x: ArrayLike, axes: frozenset[str]) -> Array:
    missing = tuple(sorted(axes - _axes(x)))
    return jax.lax.pcast(jnp.asarray(x), missing, to="varying") if missing else jnp.asarray(x)
