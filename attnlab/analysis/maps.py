"""The attention maps of a trained model."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
from jaxtyping import Array

from attnlab.mechanisms.maps import Observer, weights


def with_maps(model: Any, observer: Observer = weights) -> Any:
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


def attention_maps(model: Any, *inputs: Array | None) -> dict[str, Array]:
    """Returns the attention maps of a model for one example.

    Args:
      model: a model made by `config.create(key, shape)`.
      *inputs: inputs of the model, without a batch axis.

    Returns:
      {name of the attention, for example "encoder": maps [L H T S]}.
    """
    return observations(weights, model, *inputs)


@partial(jax.jit, static_argnums=0)
def observations(observer: Observer, model: Any, *inputs: Array | None) -> dict[str, Array]:
    """Returns what an observer returns for each attention of a model, for one example."""
    # A module-level function, so that all examples of a shape share one compiled program.
    return with_maps(model, observer).outputs_and_maps(*inputs)[1]
