"""Classification: one class for each example, or for each of its positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlab.data.text.vocabulary import Vocabulary
from attnlab.tasks.base.example import ModelExample, TaskMaps
from attnlab.tasks.base.metrics import ACCURACY
from attnlab.tasks.base.models import Classifier
from attnlab.tasks.base.shapes import Classes
from attnlab.tasks.base.task import Row, TaskData
from attnlab.tasks.base.text_interface import Batch, TextInterface

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

NONE = -1  # the label of examples and positions that are not scored


class ClassInterface(TextInterface):
    """The interface to inputs and answers of a classifier.

    Batches are {"source": [B, ...], "keep": [B T] bool, "label": [B] or [B T] int32}. Positions with label −1 are not
    scored. A batch of images has no "keep".

    A model is called with source, keep (None if the batch has none) and a key. It returns scores [classes], or [T
    classes] if `shape.each`.

    Args:
        classes: The names of the classes.
    """

    shape: Classes
    maps = TaskMaps("encoder", "encoder")

    def __init__(self, classes: Sequence[str]):
        self.classes = tuple(classes)
        self._names = Vocabulary(self.classes)

    def loss(
        self, model: Classifier, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the cross-entropy in nats.

        Returns:
            The mean over the scored positions, and {"accuracy"} over the same positions.
        """
        import jax
        import jax.numpy as jnp
        import optax

        label = jnp.asarray(batch["label"])
        keys = None if key is None else jax.random.split(key, len(label))
        scores = self.scores(model, batch, keys)
        labelled = label >= 0
        count = jnp.maximum(labelled.sum(), 1).astype(scores.dtype)
        nats = optax.softmax_cross_entropy_with_integer_labels(scores, jnp.maximum(label, 0))
        right = (jnp.argmax(scores, axis=-1) == label).astype(scores.dtype)
        loss, accuracy = (jnp.where(labelled, values, 0).sum() / count for values in (nats, right))
        return loss, {"accuracy": accuracy}

    def scores(self, model: Classifier, batch: Batch, keys: PRNGKeyArray | None = None) -> Float[Array, "B *T classes"]:
        """Returns the model's scores of the classes, [B classes] or [B T classes], at least in float32.

        Args:
            model: The model.
            batch: The batch.
            keys: One key for each example, or None.
        """
        import jax
        import jax.numpy as jnp

        source, keep = (None if batch.get(name) is None else jnp.asarray(batch[name]) for name in ("source", "keep"))
        found = jax.vmap(lambda source, keep, key: model(source, keep, key=key))(source, keep, keys)
        # In half precision, the softmax's sum of exponentials loses small terms.
        return found.astype(jnp.promote_types(found.dtype, jnp.float32))

    def answer(self, model: Classifier, batch: Batch) -> Batch:
        """Returns {"label": the most probable class, "probability": its probability}, each [B] or [B T]."""
        import jax
        import jax.numpy as jnp

        chances = jax.nn.softmax(self.scores(model, batch), axis=-1)
        return {"label": jnp.argmax(chances, axis=-1).astype(jnp.int32), "probability": chances.max(axis=-1)}

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the source, and "keep" if the batch has it."""
        return tuple(np.asarray(batch[name]) for name in ("source", "keep") if batch.get(name) is not None)

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns the input, with its symbols along both axes."""
        words = self.tokens(batch)["source"]
        return ModelExample(tuple(x[0] for x in self.model_inputs(batch)), {"encoder": (words, words)})

    def format_answer(self, answer: Batch) -> str:
        """Returns the class and its probability as text.

        If every position has a class, it returns the classes in order.
        """
        label, chance = (np.asarray(answer[name])[0] for name in ("label", "probability"))
        if label.ndim:
            return " ".join(self.classes[n] for n in label)
        return f"{self.classes[int(label)]} ({float(chance):.1%})"

    @property
    def vocabulary(self) -> dict[str, object]:
        """The names of the classes, as {"classes": [names]}."""
        return {"classes": list(self.classes)}


class ClassificationData(ClassInterface, TaskData):
    """Data with a class for each example, scored by accuracy."""

    metric = ACCURACY
    figure = "probability"

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """Returns the text or the name of each example of `eval_batches(part, limit)`, for `rows`.

        The list is empty if examples have neither.
        """
        return []

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns each example with its class, the predicted class and the probability of that."""
        label = np.concatenate([np.asarray(batch["label"]) for batch in self.eval_batches(part, limit)])
        predicted, chance = (
            np.concatenate([np.asarray(a[name]) for a in answers]) for name in ("label", "probability")
        )
        return [
            Row(text, self.classes[label[n]] if label[n] >= 0 else None, self.classes[predicted[n]], float(chance[n]))
            for n, text in enumerate(self.inputs(part, limit))
        ]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"accuracy"}: the fraction of scored positions that are correct, or {} if nothing is scored."""
        right = labelled = 0
        for batch, answer in zip(self.eval_batches(part, limit), answers, strict=True):
            label = np.asarray(batch["label"])
            right += int((np.asarray(answer["label"]) == label)[label >= 0].sum())
            labelled += int((label >= 0).sum())
        return {"accuracy": right / labelled} if labelled else {}

    def count_scored(self, part: str, limit: int | None = None) -> int | None:
        """Returns the number of scored positions."""
        return sum(int((np.asarray(batch["label"]) >= 0).sum()) for batch in self.eval_batches(part, limit))
