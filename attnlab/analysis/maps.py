"""The attention maps of a trained model, from a copy of the model that records them."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array

from attnlab.mechanisms import Watched


def watched(config: Any, model: Any, shape: Any, watch: type[Watched] = Watched) -> Any:
    """Returns a copy of a model in which each mechanism also records its map.

    The copy has the same parameters and the same outputs, and a method `look`.

    Args:
      config: the model's config.
      model: a model made by `config.create(key, shape)`.
      shape: the shape with which the model was created.
      watch: class that wraps each mechanism. Defaults to `Watched`, which records maps.
    """
    create = config.watched(watch).create
    # Wrapping a mechanism changes only static facts, so the leaves are the same, in the same order.
    like = jax.eval_shape(lambda: create(jax.random.key(0), shape))
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(model))


def maps(config: Any, model: Any, shape: Any, *inputs: Array | None) -> dict[str, Array]:
    """Returns the attention maps of a model for one example.

    Args:
      config: the model's config.
      model: a model made by `config.create(key, shape)`.
      shape: the shape with which the model was created.
      *inputs: inputs of the model, without a batch axis.

    Returns:
      {name of the attention, for example "encoder": maps [L H T S]}.
    """
    return _look(watched(config, model, shape), *inputs)


@jax.jit
def _look(model: Any, *inputs: Array | None) -> dict[str, Array]:
    """Returns the maps that a watched model records."""
    # A module-level function, so that all examples of a shape share one compiled program.
    return model.look(*inputs)[1]
