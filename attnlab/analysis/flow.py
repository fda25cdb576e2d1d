"""Signal propagation in training, by layer: the variance of scores forwards, and gradient norms backwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import DictKey, GetAttrKey, SequenceKey
from jaxtyping import Array, PyTree

from attnlab.analysis.maps import MappedModel
from attnlab.analysis.scores import scores
from attnlab.modules.block import DecoderLayer, EncoderLayer

# Attributes of networks in the order in which a signal passes them, with their displayed names. Other attributes come
# last, under their own names.
PARTS = {
    "input_layer": "input",
    "source": "source embedding",
    "source_position": "source position",
    "encoder": "encoder",
    "encoded": "encoder norm",
    "bridge": "bridge",
    "target": "target embedding",
    "target_position": "target position",
    "decoder": "decoder",
    "reader": "reader",
    "joint": "joint",
    "decoded": "decoder norm",
    "output": "output",
    "head": "output",
}


def variances(model: MappedModel, *inputs: Array | np.ndarray) -> dict[str, list[float] | None]:
    """Returns the variance of the attention scores of every layer of each attention.

    It is taken over all heads and all pairs in the batch that the mask allows. Queries and keys of independent
    components with variance one give 1 if scores are scaled by 1/√K (Vaswani et al. 2017, section 3.2.1).

    Args:
      model: a model made by `config.create(key, shape)`.
      *inputs: inputs of the model, with a leading axis of examples.

    Returns:
      {name of the attention: one variance per layer}. NaN if no pair is allowed, or if a mechanism has no scores. None
      instead of the list for an attention without maps.
    """
    moments = _moments(model, *inputs)
    return {name: None if values is None else _pooled(*values) for name, values in moments.items()}


@jax.jit
def _moments(model: MappedModel, *inputs: Array | np.ndarray) -> dict[str, tuple[Array, ...] | None]:
    """Returns for every example and layer the number of scores, their mean, and the sum of squares around the mean."""

    def moments(x):
        allowed = x != -jnp.inf
        count = allowed.sum(axis=(1, 2, 3)).astype(x.dtype)
        mean = jnp.where(allowed, x, 0).sum(axis=(1, 2, 3)) / jnp.maximum(count, 1)
        deviation = jnp.where(allowed, x - mean[:, None, None, None], 0)
        return count, mean, (deviation**2).sum(axis=(1, 2, 3))

    # One example at a time, because the scores of a whole batch take much memory.
    return jax.lax.map(
        lambda one: {name: x if x is None else moments(x) for name, x in scores(model, *one).items()}, inputs
    )


def _pooled(count: Array, mean: Array, squares: Array) -> list[float]:
    """Combines the moments of examples [B L] into one variance per layer (Chan, Golub, LeVeque 1983)."""
    n, m, s = (np.asarray(x, np.float64) for x in (count, mean, squares))
    total = np.where(n.sum(axis=0) > 0, n.sum(axis=0), np.nan)
    middle = (n * m).sum(axis=0) / total
    return ((s + n * (m - middle) ** 2).sum(axis=0) / total).tolist()


def gradient(loss: Callable, model: PyTree, batch: dict[str, Array]) -> tuple[float, dict[str, dict[str, float]]]:
    """Returns the loss of a batch without dropout, and the norms of parameters and gradients by part.

    Args:
      loss: a function `(model, batch, key) -> (scalar, metrics)`.
      model: the model.
      batch: the batch.

    Returns:
      The loss, and {part: {"parameters": norm, "gradient": norm}} with Euclidean norms. Parts are named as by `parts`.
    """
    value, slopes = _gradient(loss, model, batch)
    norms, slope_norms = parts(model), parts(slopes)
    return float(value), {name: {"parameters": norms[name], "gradient": slope_norms[name]} for name in norms}


@partial(jax.jit, static_argnums=0)
def _gradient(loss: Callable, model: PyTree, batch: dict[str, Array]) -> tuple[Array, PyTree]:
    """Returns the loss and its gradient, a tree like the model."""
    return jax.value_and_grad(lambda model: loss(model, batch, None)[0])(model)


def parts(model: PyTree) -> dict[str, float]:
    """Returns the Euclidean norm of every part of a network, from its input to its output.

    A stack of encoder or decoder layers gives one part per layer and sublayer, including its norms. Recurrent layers
    give one part each.

    Returns:
      {part: norm}, for example "source embedding" or "encoder 1 attention".
    """
    squares: dict[tuple, float] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(model):
        for place, values in _placed(model, [_name(key) for key in path], np.asarray(leaf, np.float64)):
            squares[place] = squares.get(place, 0.0) + float(np.sum(values**2))
    return {" ".join(map(str, place[1:])): float(np.sqrt(squares[place])) for place in sorted(squares)}


def _placed(model: PyTree, path: list, values: np.ndarray) -> list[tuple[tuple, np.ndarray]]:
    """Returns the parts (rank, name, layer, sublayer) to which a leaf belongs, one per layer if it is stacked."""
    part, *rest = path
    head = (list(PARTS).index(part) if part in PARTS else len(PARTS), PARTS.get(part, part))
    for depth, key in enumerate(path[:-1]):
        model = getattr(model, key) if isinstance(key, str) and hasattr(model, key) else model[key]
        if isinstance(model, EncoderLayer | DecoderLayer):
            name = path[depth + 1].removeprefix("around_")
            return [((*head, n, name), layer) for n, layer in enumerate(values, start=1)]
    numbered = rest[0] == "layers" and isinstance(rest[1], int)
    return [((*head, rest[1] + 1) if numbered else head, values)]


def _name(key: GetAttrKey | SequenceKey | DictKey):
    """Returns the attribute, index or key of an entry of a tree path."""
    return key.name if isinstance(key, GetAttrKey) else key.idx if isinstance(key, SequenceKey) else key.key
