"""The problem of sorting: a class for an example, or for each of its positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.data.text.vocabulary import Vocabulary
from attnlab.tasks.base.task import Batch, Classes, Row, TaskData, TextInterface

NONE = -1  # the label of what is not asked for


class ClassInterface(TextInterface):
    """Batches are {"source": [B …], "keep": [B T] bool, "label": [B] or [B T] int32}; label −1 asks nothing.

    A batch of images has no "keep". A model is called with source, keep (None where the batch has none) and a key,
    and answers scores [classes], or [T classes] where the shape says `each`. `classes` names them.
    """

    shape: Classes

    def __init__(self, classes: Sequence[str]):
        self.classes = tuple(classes)
        self._names = Vocabulary(self.classes)

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Cross-entropy in nats, the mean over what is asked; and {"accuracy"} there."""
        import jax
        import jax.numpy as jnp
        import optax

        label = jnp.asarray(batch["label"])
        keys = None if key is None else jax.random.split(key, len(label))
        scores = self.scores(model, batch, keys)
        asked = label >= 0
        count = jnp.maximum(asked.sum(), 1).astype(scores.dtype)
        nats = optax.softmax_cross_entropy_with_integer_labels(scores, jnp.maximum(label, 0))
        right = (jnp.argmax(scores, axis=-1) == label).astype(scores.dtype)
        loss, accuracy = (jnp.where(asked, values, 0).sum() / count for values in (nats, right))
        return loss, {"accuracy": accuracy}

    def scores(self, model: Any, batch: Batch, keys: Any = None) -> Any:
        """The model's scores of every class [B classes] or [B T classes], in float32 at least; a key an example."""
        import jax
        import jax.numpy as jnp

        source, keep = (None if batch.get(name) is None else jnp.asarray(batch[name]) for name in ("source", "keep"))
        found = jax.vmap(lambda source, keep, key: model(source, keep, key=key))(source, keep, keys)
        # Sums of half-precision exponentials lose the tail.
        return found.astype(jnp.promote_types(found.dtype, jnp.float32))

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"label": the likeliest class, "probability": what it is given}, [B] or [B T] each."""
        import jax
        import jax.numpy as jnp

        chances = jax.nn.softmax(self.scores(model, batch), axis=-1)
        return {"label": jnp.argmax(chances, axis=-1).astype(jnp.int32), "probability": chances.max(axis=-1)}

    def format_answer(self, answer: Batch) -> str:
        """The class, and what probability it is given; of every position, the classes in their order."""
        label, chance = (np.asarray(answer[name])[0] for name in ("label", "probability"))
        if label.ndim:
            return " ".join(self.classes[n] for n in label)
        return f"{self.classes[int(label)]} ({float(chance):.1%})"

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"classes": [names]}."""
        return {"classes": list(self.classes)}


class ClassificationData(ClassInterface, TaskData):
    """Examples of which each has a class; scored by accuracy."""

    metric, higher = "accuracy", True
    figure = "probability"

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """The examples of `examination(part, limit)` as text or by name, for `rows`; empty where they have neither."""
        return []

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Each example with its class, the class that it is given, and the probability of that."""
        label = np.concatenate([np.asarray(batch["label"]) for batch in self.eval_batches(part, limit)])
        said, chance = (np.concatenate([np.asarray(a[name]) for a in answers]) for name in ("label", "probability"))
        return [
            Row(text, self.classes[label[n]] if label[n] >= 0 else None, self.classes[said[n]], float(chance[n]))
            for n, text in enumerate(self.inputs(part, limit))
        ]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"accuracy"}: the share of what is asked that is answered right; {} where nothing is asked."""
        right = asked = 0
        for batch, answer in zip(self.eval_batches(part, limit), answers, strict=True):
            label = np.asarray(batch["label"])
            right += int((np.asarray(answer["label"]) == label)[label >= 0].sum())
            asked += int((label >= 0).sum())
        return {"accuracy": right / asked} if asked else {}

    def counted(self, part: str, limit: int | None = None) -> int | None:
        """What is asked."""
        return sum(int((np.asarray(batch["label"]) >= 0).sum()) for batch in self.eval_batches(part, limit))
