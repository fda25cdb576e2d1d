"""What flows through a model in training: its scores' variance forwards, its gradient's norm backwards, by layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnlab.analysis.scores import look, scored
from attnlab.modules.block import DecoderLayer, EncoderLayer

# Parts of networks as a signal passes them, and what they are called; others come last, by their own names.
PARTS = {
    "front": "front",
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


def variances(config: Any, model: Any, shape: Any, *inputs: Array | np.ndarray) -> dict[str, list[float] | None]:
    """The variance of the scores of every layer of each attention, over all heads and pairs that may meet in a batch.

    `inputs` are those of the model with a leading axis of examples. For queries and keys of independent components of
    variance one it is 1 where scores are scaled by 1/√K (Vaswani et al. 2017, section 3.2.1). NaN where no pair may
    meet, or a mechanism has no scores.
    """
    seen = _moments(scored(config, model, shape), *inputs)
    return {name: None if found is None else _pooled(*found) for name, found in seen.items()}


@jax.jit
def _moments(model: Any, *inputs: Array | np.ndarray) -> dict[str, Any]:
    """Of every example and layer: how many scores there are, their mean, and the sum of squares around it."""

    def of(seen):
        meets = seen != -jnp.inf
        count = meets.sum(axis=(1, 2, 3)).astype(seen.dtype)
        mean = jnp.where(meets, seen, 0).sum(axis=(1, 2, 3)) / jnp.maximum(count, 1)
        around = jnp.where(meets, seen - mean[:, None, None, None], 0)
        return count, mean, (around**2).sum(axis=(1, 2, 3))

    # One example at a time: scores of a batch together are many.
    return jax.lax.map(lambda one: {name: x if x is None else of(x) for name, x in look(model, *one).items()}, inputs)


def _pooled(count: Array, mean: Array, squares: Array) -> list[float]:
    """The variance of all that examples [B L] hold together (Chan, Golub, LeVeque 1983), by layer."""
    n, m, s = (np.asarray(x, np.float64) for x in (count, mean, squares))
    total = np.where(n.sum(axis=0) > 0, n.sum(axis=0), np.nan)
    middle = (n * m).sum(axis=0) / total
    return ((s + n * (m - middle) ** 2).sum(axis=0) / total).tolist()


def gradient(loss: Callable, model: Any, batch: dict[str, Any]) -> tuple[float, dict[str, dict[str, float]]]:
    """The loss of a batch without dropout, and {part: {"parameters", "gradient"}}: Euclidean norms of what it learns.

    Parts are named as in `parts`. `loss(model, batch, key) -> (scalar, metrics)`.
    """
    value, found = _gradient(loss, model, batch)
    here, back = parts(model), parts(found)
    return float(value), {name: {"parameters": here[name], "gradient": back[name]} for name in here}


@partial(jax.jit, static_argnums=0)
def _gradient(loss: Callable, model: Any, batch: dict[str, Any]) -> tuple[Array, Any]:
    return jax.value_and_grad(lambda model: loss(model, batch, None)[0])(model)


def parts(model: Any) -> dict[str, float]:
    """The norm of every part of a network: "source embedding", "encoder 1 attention", …, from its input to its output.

    Of a stack, each layer's sublayers, with the norms around them; of recurrent layers, each.
    """
    squares: dict[tuple, float] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(model):
        for place, values in _placed(model, [_name(key) for key in path], np.asarray(leaf, np.float64)):
            squares[place] = squares.get(place, 0.0) + float(np.sum(values**2))
    return {" ".join(map(str, place[1:])): float(np.sqrt(squares[place])) for place in sorted(squares)}


def _placed(model: Any, path: list[Any], values: np.ndarray) -> list[tuple[tuple, np.ndarray]]:
    """Where a leaf belongs, (rank, part, layer, sublayer), layer by layer where it holds several."""
    part, *rest = path
    head = (list(PARTS).index(part) if part in PARTS else len(PARTS), PARTS.get(part, part))
    for depth, key in enumerate(path[:-1]):
        model = getattr(model, key) if isinstance(key, str) and hasattr(model, key) else model[key]
        if isinstance(model, EncoderLayer | DecoderLayer):
            name = path[depth + 1].removeprefix("around_")
            return [((*head, n, name), layer) for n, layer in enumerate(values, start=1)]
    numbered = rest[0] == "layers" and isinstance(rest[1], int)
    return [((*head, rest[1] + 1) if numbered else head, values)]


def _name(key: Any) -> Any:
    return key.name if isinstance(key, jax.tree_util.GetAttrKey) else key.idx if hasattr(key, "idx") else key.key
