"""The attention maps of a trained model: the same parameters, with every mechanism watched."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array

from attnlab.mechanisms import Watched


def watched(config: Any, model: Any, shape: Any, watch: type[Watched] = Watched) -> Any:
    """`model`, made by `config.create(key, shape)`, with each mechanism watched: same numbers, and it can `look`."""
    create = config.watched(watch).create
    # Watching changes static facts alone, so the leaves are the same, in the same order.
    like = jax.eval_shape(lambda: create(jax.random.key(0), shape))
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(model))


def maps(config: Any, model: Any, shape: Any, *inputs: Array | None) -> dict[str, Array]:
    """What each attention of a model did with one example: {its name, such as "encoder": [L H T S]}."""
    return _look(watched(config, model, shape), *inputs)


@jax.jit
def _look(model: Any, *inputs: Array | None) -> dict[str, Array]:
    # One function, so that several examples of a shape share a program.
    return model.look(*inputs)[1]
