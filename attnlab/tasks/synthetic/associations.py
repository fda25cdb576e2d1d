"""How many associations fit: key-value pairs, one after another, and one key whose value is asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.data.synthetic import associations
from attnlab.tasks.base import checks
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.task import Batch, Row, Task, TaskData

EXAMINED = 20  # sequences of an examination's batch, each asked for all of its keys


@dataclass(frozen=True)
class Associations(Task):
    """Pairs of a key and a value, then a key: "0:2 1:0 2:1 1?" → "0"; scored by ½‖v − v̂‖², v one-hot.

    `keys` keys and as many values. With `length` 0 every key and every value comes once, in random order (setting 1
    of Schlag et al. 2021, section 6.1); else `length` pairs are drawn with replacement and a key's last value counts
    (setting 2, there with twice as many pairs as keys). Training asks one key a sequence, that of a place drawn
    evenly, and never repeats a sequence. The examinations ask every key of `examined` sequences, and where
    `examined_length` is given these are so long: the published ones of setting 2 were as long as there are keys,
    half as long as those trained on.
    """

    keys: int = 40
    length: int = 0
    examined: int = 20
    examined_length: int = 0
    seed: int = 0

    def __post_init__(self):
        checks.counts(self, ["keys"], most=65_536)
        checks.counts(self, ["examined"], most=10_000_000)
        checks.counts(self, ["length", "examined_length"], least=0, most=65_536)
        checks.seed(self)
        if self.examined_length and not self.length:
            raise ValueError(
                f"task.examined_length={self.examined_length} needs task.length: with task.length=0 each key comes once"
            )

    def load(self) -> AssociationData:
        """The sequences are drawn as they are asked for."""
        return AssociationData(self)


@dataclass(frozen=True)
class AssociationShape:
    """What a retrieval network must be built for: how many keys and values there are, and pairs at the most."""

    keys: int
    values: int
    length: int


class AssociationData(TaskData):
    """Key-value pairs to be kept, and read by key: the problem of `Associations`.

    A model is called with keys [T], values [T] and queries [Q], and answers a vector over the values for each query.
    """

    metric, higher = "loss", False
    figure = "loss"

    def __init__(self, task: Associations):
        self.task = task
        self.shape = AssociationShape(task.keys, task.keys, max(task.length or task.keys, task.examined_length))
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 2), *self.eval_batches("test", 2)])

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """{"keys", "values": [B T], "queries", "answers": [B 1], "asked": [B 1]}."""
        random = self._random("train", seed, step)
        keys, values = associations.pairs(random, size, self.task.keys, self.task.length)
        queries, answers = associations.asked(random, keys, values)
        return {
            "keys": keys,
            "values": values,
            "queries": queries,
            "answers": answers,
            "asked": np.ones_like(queries, bool),
        }

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """½‖v − v̂‖², summed over the values and averaged over the questions; and {"accuracy"}."""
        answer = self._ask(model, batch, key)
        asked = batch["asked"].astype(answer["loss"].dtype)
        loss, accuracy = ((answer[name] * asked).sum() / asked.sum() for name in ("loss", "right"))
        return loss, {"accuracy": accuracy}

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"said": [B Q], "loss": [B Q], "right": [B Q]}: the value it would name, its loss, whether it is right."""
        return self._ask(model, batch, None)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Batches of 20 sequences, each asked for every key; "asked" says which keys it has."""
        count = self._count(part, limit)
        starts = range(0, count, EXAMINED)
        size = min(EXAMINED, count)
        return [self._examine(part, start, min(size, count - start), size) for start in starts]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"loss", "accuracy"}: the means over all keys asked."""
        asked = np.concatenate([batch["asked"] for batch in self.eval_batches(part, limit)])
        means = {}
        for metric, name in (("loss", "loss"), ("accuracy", "right")):
            values = np.concatenate([np.asarray(answer[name], np.float64) for answer in answers])
            means[metric] = float(values[asked].mean())
        return means

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """A row for each key that is asked for: the pairs and the key, its value, the value named, and its loss."""
        found = []
        for batch, answer in zip(self.eval_batches(part, limit), answers, strict=True):
            said, loss = (np.asarray(answer[name]) for name in ("said", "loss"))
            for row, n in zip(*np.nonzero(batch["asked"]), strict=True):
                pairs = zip(batch["keys"][row].tolist(), batch["values"][row].tolist(), strict=True)
                text = " ".join(f"{key}:{value}" for key, value in pairs) + f" {batch['queries'][row, n]}?"
                found.append(Row(text, str(batch["answers"][row, n]), str(said[row, n]), float(loss[row, n])))
        return found

    def encode_prompt(self, text: str) -> Batch:
        """One sequence, "0:2 1:0 1?". Raises DataError for what is none, or names a key or value there is not."""
        *told, query = text.split() or [""]
        words = [re.fullmatch(r"(\d+):(\d+)", word) for word in told]
        last = re.fullmatch(r"(\d+)\?", query)
        if not told or last is None or None in words:
            raise DataError(f"the input {text!r} must be pairs and a question: 0:2 1:0 1?")
        pairs, query = [[int(n) for n in word.groups()] for word in words if word], int(last[1])
        if max(query, *map(max, pairs)) >= self.task.keys or query not in (key for key, _ in pairs):
            raise DataError(f"the input {text!r} must hold numbers below {self.task.keys}, and the key it asks for")
        (keys, values), asked = np.array(pairs).T, np.array([query])
        one = {"keys": keys, "values": values, "queries": asked, "answers": values[keys == asked][-1:]}
        return {name: row[None].astype(np.int32) for name, row in one.items()} | {"asked": np.ones((1, 1), bool)}

    def format_answer(self, answer: Batch) -> str:
        """The value named first."""
        return str(int(np.asarray(answer["said"])[0, 0]))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The pairs, and the keys asked for."""
        pairs = zip(batch["keys"][0].tolist(), batch["values"][0].tolist(), strict=True)
        return {
            "source": [f"{key}:{value}" for key, value in pairs],
            "target": [f"{query}?" for query in batch["queries"][0].tolist()],
        }

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"keys": [symbols], "values": [symbols]}."""
        return {name: list(map(str, range(self.task.keys))) for name in ("keys", "values")}

    def _ask(self, model: Any, batch: Batch, key: Any) -> Batch:
        import jax
        import jax.numpy as jnp

        def one(row, key):
            v = model(row["keys"], row["values"], row["queries"], key=key)
            v = v.astype(jnp.promote_types(v.dtype, jnp.float32))
            at = jnp.take_along_axis(v, row["answers"][:, None], axis=1)[:, 0]
            # ½‖v − onehot‖², without the one-hot.
            loss = 0.5 * ((v * v).sum(axis=1) - 2 * at + 1)
            said = jnp.argmax(v, axis=1)
            return {"said": said, "loss": loss, "right": (said == row["answers"]).astype(v.dtype)}

        keys = None if key is None else jax.random.split(key, len(batch["keys"]))
        return jax.vmap(one)(jax.tree.map(jnp.asarray, batch), keys)

    def _examine(self, part: str, start: int, count: int, size: int) -> Batch:
        length = self.task.examined_length or self.task.length
        drawn = associations.pairs(self._random(part, start), EXAMINED, self.task.keys, length)
        keys, values = (rows[:size] for rows in drawn)
        answers, asked = associations.latest(keys, values, self.task.keys)
        queries = np.broadcast_to(np.arange(self.task.keys, dtype=np.int32), answers.shape)
        asked = asked & (np.arange(size) < count)[:, None]
        return {"keys": keys, "values": values, "queries": queries, "answers": answers, "asked": asked}

    def _count(self, part: str, limit: int | None) -> int:
        check_part(part, limit)
        return self.task.examined if limit is None else min(limit, self.task.examined)

    def _random(self, part: str, *more: int) -> np.random.Generator:
        return generator(self.task.seed, PARTS.index(part), *more)
