"""The attention maps of a trained model."""

from __future__ import annotations

from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, PyTree

from attnlab.mechanisms.maps import Observer, weights


@runtime_checkable
class MappedModel(Protocol):
    """A model that can return attention maps: a pytree made by `config.create(key, shape)`."""

    def outputs_and_maps(self, *inputs: Array | np.ndarray | None) -> tuple[PyTree, dict[str, Array]]:
        """Returns the outputs, and the maps by the name of the attention."""
        ...


Model = TypeVar("Model", bound=MappedModel)


def with_maps(model: Model, observer: Observer = weights) -> Model:
    """Returns a copy of a model whose method `outputs_and_maps` also returns attention maps.

    The copy shares the model's arrays and computes the same outputs.

    Args:
      model: a model made by `config.create(key, shape)`.
      observer: function of each call of a mechanism. Defaults to `weights`, the attention map.
    """
    from flax import nnx

    from attnlab.modules.observable import Observable

    copy = jax.tree.map(lambda leaf: leaf, model)
    for _, module in nnx.iter_modules(copy):
        if isinstance(module, Observable):
            module.observer = observer
    return copy


def attention_maps(model: MappedModel, *inputs: Array | np.ndarray | None) -> dict[str, Array]:
    """Returns the attention maps of a model for one example.

    Args:
      model: a model made by `config.create(key, shape)`.
      *inputs: inputs of the model, without a batch axis.

    Returns:
      {name of the attention, for example "encoder": maps [L H T S]}. If the layers have different numbers of heads, H
      is the least common multiple of these, and each head of a layer appears H / (its number of heads) times in a row.
    """
    return observations(weights, model, *inputs)


@partial(jax.jit, static_argnums=0)
def observations(observer: Observer, model: MappedModel, *inputs: Array | np.ndarray | None) -> dict[str, Array]:
    """Returns what an observer returns for each attention of a model, for one example."""
    # A module-level function, so that all examples of a shape share one compiled program.
    return with_maps(model, observer).outputs_and_maps(*inputs)[1]
