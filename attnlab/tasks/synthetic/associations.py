"""The associations task: how many key-value pairs a model can store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.data.synthetic import associations
from attnlab.tasks.base import checks
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.models import Retriever
from attnlab.tasks.base.task import LOSS, Row, Task, TaskData
from attnlab.tasks.base.text_interface import Batch

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

EXAMINED = 20  # sequences in an evaluation batch, each queried for all of its keys


@dataclass(frozen=True)
class Associations(Task):
    """Key-value pairs, then a key: "0:2 1:0 2:1 1?" → "0". Scored by ½‖v − v̂‖² with v one-hot.

    The value of the queried key is to be returned. Training queries one key for each sequence, that of a position drawn
    uniformly, and never repeats a sequence. Evaluation queries every key of each sequence.

    With `length=0` this is setting 1 of Schlag et al. 2021, section 6.1. Otherwise it is setting 2, which there has
    twice as many pairs as keys.
    """

    keys: int = 40
    """The number of keys, and of values."""
    length: int = 0
    """The number of pairs in a sequence.

    0 means that every key and every value occurs once, in random order. Otherwise, pairs are drawn with replacement,
    and the last value of a key counts.
    """
    examined: int = 20
    """The number of evaluation sequences in each part."""
    examined_length: int = 0
    """The number of pairs in an evaluation sequence. 0 means `length`. It requires `length`.

    The published evaluation sequences of setting 2 were as long as there are keys, half as long as the training
    sequences.
    """
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.counts(self, ["keys"], most=65_536)
        checks.counts(self, ["examined"], most=10_000_000)
        checks.counts(self, ["length", "examined_length"], least=0, most=65_536)
        checks.seed(self)
        if self.examined_length and not self.length:
            raise ValueError(
                f"task.examined_length={self.examined_length} requires task.length: with task.length=0 "
                "each key occurs once"
            )

    def load(self) -> AssociationData:
        """Returns the data. Sequences are generated when they are requested."""
        return AssociationData(self)


@dataclass(frozen=True)
class AssociationShape:
    """The shape of the task: what a retrieval network must be built for."""

    keys: int
    """The number of keys."""
    values: int
    """The number of values."""
    length: int
    """The largest number of pairs in a sequence."""


class AssociationData(TaskData):
    """The data of `Associations`.

    A model is called with keys [T], values [T] and queries [Q]. It returns a vector over the values for each query.
    """

    metric = LOSS
    figure = "loss"

    def __init__(self, task: Associations):
        self.task = task
        self.shape = AssociationShape(task.keys, task.keys, max(task.length or task.keys, task.examined_length))
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 2), *self.eval_batches("test", 2)])

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns {"keys", "values": [B T], "queries", "answers": [B 1], "scored": [B 1]}."""
        random = self._random("train", seed, step)
        keys, values = associations.pairs(random, size, self.task.keys, self.task.length)
        queries, answers = associations.draw_queries(random, keys, values)
        return {
            "keys": keys,
            "values": values,
            "queries": queries,
            "answers": answers,
            "scored": np.ones_like(queries, bool),
        }

    def loss(
        self, model: Retriever, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes ½‖v − v̂‖², summed over the values and averaged over the queries.

        Returns:
            The loss, and {"accuracy"}.
        """
        answer = self._ask(model, batch, key)
        scored = batch["scored"].astype(answer["loss"].dtype)
        loss, accuracy = ((answer[name] * scored).sum() / scored.sum() for name in ("loss", "right"))
        return loss, {"accuracy": accuracy}

    def answer(self, model: Retriever, batch: Batch) -> Batch:
        """Returns {"predicted": [B Q], "loss": [B Q], "right": [B Q]}.

        These are the predicted value, its loss, and whether it is correct.
        """
        return self._ask(model, batch, None)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns batches of 20 sequences, each queried for every key.

        "scored" is true for keys that occur in the sequence.
        """
        count = self._count(part, limit)
        starts = range(0, count, EXAMINED)
        size = min(EXAMINED, count)
        return [self._examine(part, start, min(size, count - start), size) for start in starts]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"loss", "accuracy"}: the means over all queried keys."""
        scored = np.concatenate([batch["scored"] for batch in self.eval_batches(part, limit)])
        means = {}
        for metric, name in (("loss", "loss"), ("accuracy", "right")):
            values = np.concatenate([np.asarray(answer[name], np.float64) for answer in answers])
            means[metric] = float(values[scored].mean())
        return means

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns a row for each queried key: the pairs and the key, its value, the predicted value, and the loss."""
        found = []
        for batch, answer in zip(self.eval_batches(part, limit), answers, strict=True):
            predicted, loss = (np.asarray(answer[name]) for name in ("predicted", "loss"))
            for row, n in zip(*np.nonzero(batch["scored"]), strict=True):
                pairs = zip(batch["keys"][row].tolist(), batch["values"][row].tolist(), strict=True)
                text = " ".join(f"{key}:{value}" for key, value in pairs) + f" {batch['queries'][row, n]}?"
                found.append(Row(text, str(batch["answers"][row, n]), str(predicted[row, n]), float(loss[row, n])))
        return found

    def encode_prompt(self, text: str) -> Batch:
        """Parses one sequence, for example "0:2 1:0 1?".

        Raises:
            DataError: If the text is not such a sequence, or if a key or value does not exist.
        """
        *given, query = text.split() or [""]
        words = [re.fullmatch(r"(\d+):(\d+)", word) for word in given]
        last = re.fullmatch(r"(\d+)\?", query)
        if not given or last is None or None in words:
            raise DataError(f"the input {text!r} must be pairs and a queried key, for example 0:2 1:0 1?")
        pairs, query = [[int(n) for n in word.groups()] for word in words if word], int(last[1])
        if max(query, *map(max, pairs)) >= self.task.keys or query not in (key for key, _ in pairs):
            raise DataError(
                f"the input {text!r} must have keys and values below {self.task.keys} and contain the queried key"
            )
        (keys, values), queries = np.array(pairs).T, np.array([query])
        one = {"keys": keys, "values": values, "queries": queries, "answers": values[keys == queries][-1:]}
        return {name: row[None].astype(np.int32) for name, row in one.items()} | {"scored": np.ones((1, 1), bool)}

    def format_answer(self, answer: Batch) -> str:
        """Returns the predicted value of the first query."""
        return str(int(np.asarray(answer["predicted"])[0, 0]))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the pairs as "source" and the queried keys as "target"."""
        pairs = zip(batch["keys"][0].tolist(), batch["values"][0].tolist(), strict=True)
        return {
            "source": [f"{key}:{value}" for key, value in pairs],
            "target": [f"{query}?" for query in batch["queries"][0].tolist()],
        }

    @property
    def vocabulary(self) -> dict[str, object]:
        """The symbols, as {"keys": [symbols], "values": [symbols]}."""
        return {name: list(map(str, range(self.task.keys))) for name in ("keys", "values")}

    def _ask(self, model: Retriever, batch: Batch, key: PRNGKeyArray | None) -> Batch:
        import jax
        import jax.numpy as jnp

        def one(row, key):
            v = model(row["keys"], row["values"], row["queries"], key=key)
            v = v.astype(jnp.promote_types(v.dtype, jnp.float32))
            at = jnp.take_along_axis(v, row["answers"][:, None], axis=1)[:, 0]
            # ½‖v − onehot‖² expanded, so that the one-hot vector is not built.
            loss = 0.5 * ((v * v).sum(axis=1) - 2 * at + 1)
            value = jnp.argmax(v, axis=1)
            return {"predicted": value, "loss": loss, "right": (value == row["answers"]).astype(v.dtype)}

        keys = None if key is None else jax.random.split(key, len(batch["keys"]))
        return jax.vmap(one)(jax.tree.map(jnp.asarray, batch), keys)

    def _examine(self, part: str, start: int, count: int, size: int) -> Batch:
        length = self.task.examined_length or self.task.length
        drawn = associations.pairs(self._random(part, start), EXAMINED, self.task.keys, length)
        keys, values = (rows[:size] for rows in drawn)
        answers, scored = associations.latest(keys, values, self.task.keys)
        queries = np.broadcast_to(np.arange(self.task.keys, dtype=np.int32), answers.shape)
        scored = scored & (np.arange(size) < count)[:, None]
        return {"keys": keys, "values": values, "queries": queries, "answers": answers, "scored": scored}

    def _count(self, part: str, limit: int | None) -> int:
        check_part(part, limit)
        return self.task.examined if limit is None else min(limit, self.task.examined)

    def _random(self, part: str, *more: int) -> np.random.Generator:
        return generator(self.task.seed, PARTS.index(part), *more)
