"""A trained model's answers as pictures, which are stored with the run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import numpy as np

from attnlab.plotting import plain
from attnlab.tasks.base.task import TaskData
from attnlab.tasks.base.text_interface import Batch

FIRST = 16  # test examples that are shown


def answer_pictures(problem: TaskData, answers: Callable[[int], Batch]) -> dict[str, list[dict[str, str]]] | None:
    """Draw a trained model's answers to the first test examples, as stored in `pictures.json`.

    Args:
        problem: The data of the task.
        answers: Returns the trained model's answers to a number of test examples, the first ones.

    Returns:
        {"pictures": [{"caption", "png" (base64)}]}, or None if the problem draws no pictures.
    """
    if type(problem).pictures is TaskData.pictures:
        return None
    batch = {name: np.asarray(values)[:FIRST] for name, values in problem.eval_batches("test", FIRST)[0].items()}
    answer = {name: x[:FIRST] for name, x in answers(FIRST).items()}
    with plain():
        drawn = problem.pictures(batch, answer)
    return {"pictures": [{"caption": name, "png": b64encode(png).decode()} for name, png in drawn.items()]}
