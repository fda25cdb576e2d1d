"""A trained model's answers as pictures, which are stored with the run."""

from __future__ import annotations

from base64 import b64encode

import jax
import numpy as np
from jaxtyping import PyTree

from attnlab.plotting import plain
from attnlab.tasks.base.task import TaskData

FIRST = 16  # test examples that are shown


def answer_pictures(model: PyTree, problem: TaskData) -> dict[str, list[dict[str, str]]] | None:
    """Draw a trained model's answers to the first test examples, as stored in `pictures.json`.

    Returns:
        {"pictures": [{"caption", "png" (base64)}]}, or None if the problem draws no pictures.
    """
    if type(problem).pictures is TaskData.pictures:
        return None
    batch = {name: np.asarray(values)[:FIRST] for name, values in problem.eval_batches("test", FIRST)[0].items()}
    answer = jax.tree.map(np.asarray, jax.jit(problem.answer)(model, batch))
    with plain():
        drawn = problem.pictures(batch, answer)
    return {"pictures": [{"caption": name, "png": b64encode(png).decode()} for name, png in drawn.items()]}
