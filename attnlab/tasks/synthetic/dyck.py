"""Dyck languages: which bracket closes the last open one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.synthetic import dyck
from attnlab.tasks.base import checks
from attnlab.tasks.base.models import TokenScores
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.lengths import LengthData, LengthTask

CLOSING_ACCURACY = Metric("closing_accuracy", "%", 0, 1, higher=True)
CONFIDENT = 0.8  # the least share of the probability of all closing brackets that the right one must have


@dataclass(frozen=True)
class Dyck(LengthTask):
    """Nested brackets of several kinds: "(0 (1 1) (0" → "0)". Scored by the closing brackets that a model prefers.

    A model of the language predicts each bracket from those before it, which may open or close. After each bracket at
    which some are open, only one may close: that of the last open one. It counts as predicted if it has more than 80%
    of the probability of all closing brackets. The primary metric "closing_accuracy" is the mean over distances, in
    brackets, of the fraction predicted at that distance from the open bracket. So, short distances, which are the most
    frequent, do not decide it. The language, Dyck-(k, m), and the metric are those of Hewitt et al. 2020.

    Published are kinds 2, 8, 32 and 128, and depths of 3, trained to length 84 and tested to 168, and of 5, trained to
    180 and tested to 360. There, words are whole and end with a mark. Here, a sequence is the beginning of an endless
    one. "closing_accuracy.256" is the metric at length 256. Validation uses the training length.
    """

    shortest: ClassVar[int] = 3

    kinds: int = 8
    """The number k of kinds of brackets."""
    depth: int = 5
    """The largest number m of open brackets."""

    def __post_init__(self):
        super().__post_init__()
        checks.counts(self, ["kinds"], least=2, most=65_536)
        checks.counts(self, ["depth"], most=1_000)

    def load(self) -> DyckData:
        """Returns the data. Sequences are generated when they are requested."""
        return DyckData(self)


class DyckData(LengthData[Dyck]):
    """The data of `Dyck`.

    Every position asks for the next bracket in training, and for the closing bracket in evaluation.
    """

    metric = CLOSING_ACCURACY

    def __init__(self, task: Dyck):
        kinds = range(task.kinds)
        super().__init__(task, [*(f"({n}" for n in kinds), *(f"{n})" for n in kinds)])

    def draw(self, random: np.random.Generator, size: int, length: int, part: str) -> Batch:
        """Returns {"tokens", "answers": [N T] int32, "scored": [N T]}, and for evaluation {"closing", "distance"} too.

        "answers" are the next brackets. "closing" and "distance" [N T] are those of `attnlab.data.synthetic.dyck.draw`.
        """
        ids, closing, distance = dyck.draw(random, size, length + 1, self.task.kinds, self.task.depth)
        batch = {"tokens": ids[:, :-1], "answers": ids[:, 1:], "scored": np.ones((size, length), bool)}
        return batch if part == "train" else batch | {"closing": closing[:, :-1], "distance": distance[:, :-1]}

    def answer(self, model: TokenScores, batch: Batch) -> Batch:
        """Returns {"tokens", "share": [B T]}: the likeliest closing bracket, and its share of all closing brackets."""
        import jax
        import jax.numpy as jnp

        def closing(tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
            scores = model(tokens, None, key=None)[:, self.task.kinds :]
            return self.task.kinds + jnp.argmax(scores, axis=-1), jax.nn.softmax(scores, axis=-1).max(axis=-1)

        tokens, share = jax.vmap(closing)(jnp.asarray(batch["tokens"]))
        return {"tokens": tokens, "share": share}

    def questions(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Returns the closing brackets, and where a bracket is open, both [B T]."""
        return batch["closing"], batch["closing"] != dyck.NONE

    def measure(self, part: str, whole: Batch, answer: Batch) -> dict[str, float]:
        """Returns {"closing_accuracy"}: the mean over distances of the fraction of confident correct predictions."""
        expected, scored = self.questions(whole)
        right = ((answer["tokens"] == expected) & (answer["share"] > CONFIDENT))[scored]
        distance = whole["distance"][scored]
        count = np.bincount(distance)
        shares = np.bincount(distance, right)[count > 0] / count[count > 0]
        return {self.metric.name: float(shares.mean())}

    def counted(self, part: str, limit: int | None = None) -> None:
        """Returns None, because the metric is a mean of fractions of different numbers of brackets."""
