"""The data of image classification."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from attnlab.data.batches import Buckets
from attnlab.data.images import photos, sampling
from attnlab.data.images.labelled import Labelled, absent
from attnlab.data.names import PARTS, check_part
from attnlab.data.repeats import ambiguous, hashes, repeated
from attnlab.data.rng import generator
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.classification import NONE, ClassificationData
from attnlab.tasks.base.models import Classifier
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.shapes import Classes, Image
from attnlab.tasks.base.text_interface import Batch

if TYPE_CHECKING:
    import jax
    from jaxtyping import Array, Float, PRNGKeyArray

Arrays = TypeVar("Arrays", np.ndarray, "jax.Array")
EXAMINED = 256  # images in an evaluation batch


class Augmentation(NamedTuple):
    """How training images are changed."""

    shift: int = 0
    """The largest random shift in pixels, in each direction."""
    flip: bool = False
    """Whether half of the images are flipped horizontally."""


class ImageData(ClassificationData):
    """Images of one size, normalised by the mean and the standard deviation of the training part.

    Training batches hold the bytes, {"source": [B H W C] uint8, "label": [B] int32}, because the device holds batches
    for many steps and lanes at once. Evaluation batches hold the normalised images in float32.

    `notes` report classes without images in a part, and images that also occur in training. They also report classes so
    small that `share` would leave no image, of which one is then used.

    Args:
        parts: The images of "train", "valid" and "test".
        classes: The names of the classes.
        share: The fraction of the training part that each training seed draws, in every class.
        change: How training images are augmented.
        names: The names of the images of each part. None names them by number.
    """

    def __init__(
        self,
        parts: Mapping[str, Labelled],
        classes: Sequence[str],
        share: float = 1.0,
        change: Augmentation = Augmentation(),
        names: Mapping[str, list[str]] | None = None,
    ):
        super().__init__(classes)
        self.parts, self._share, self._change = parts, share, change
        self._names_of: Mapping[str, list[str]] = names or {}
        train = parts["train"]
        height, width, channels = train.images.shape[1:]
        self.shape = Classes(Image(height, width, channels), len(self.classes))
        # Ten thousand images determine mean and deviation well enough.
        some = train.images[:: max(1, len(train.images) // 10_000)].astype(np.float32)
        level = some.mean(axis=(0, 1, 2), keepdims=True), some.std(axis=(0, 1, 2), keepdims=True)
        self._mean, self._deviation = level[0], np.maximum(level[1], 1)
        self._rows = lru_cache(maxsize=64)(lambda seed: sampling.portion(train.labels, share, seed))
        self._order = Buckets(np.zeros(len(self._rows(0))), count=1)
        self.fingerprint = _fingerprint(parts)
        alike = {part: hashes(held.images) for part, held in parts.items()}
        self.notes = (
            *absent(parts, self.classes),
            *sampling.small_class_notes(train, share),
            *ambiguous({part: self._labelled(part, alike[part]) for part in parts}, "picture"),
            *repeated(alike),
        )

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns {"source": [B H W C] uint8, "label": [B] int32}."""
        rows = self._rows(seed)[self._order.batch(seed, step, size)[0]]
        train = self.parts["train"]
        random = generator(seed, step, *self._change)
        return {"source": sampling.augmented(train.images[rows], random, *self._change), "label": train.labels[rows]}

    def scores(self, model: Classifier, batch: Batch, keys: PRNGKeyArray | None = None) -> Float[Array, "B classes"]:
        """Returns the model's scores of the classes, [B classes]. Images given as bytes are normalised here."""
        import jax.numpy as jnp

        source = jnp.asarray(batch["source"])
        source = self._given(source) if source.dtype == jnp.uint8 else source
        return super().scores(model, {**batch, "source": source}, keys)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the normalised images of a part, or `limit` of them.

        Rows that fill up the last batch are not scored.
        """
        check_part(part, limit)
        held, labels = self.parts[part]
        rows = sampled(len(labels), limit)
        return equal_batches({"source": self._given(held[rows]), "label": labels[rows]}, EXAMINED, label=NONE)

    def encode_prompt(self, text: str) -> Batch:
        """Returns an image as {"source": [1 H W C]}.

        Args:
            text: The number of an image, for example "test:12" for the twelfth image of the test part (also of valid
                and train), or the path of a picture.

        Raises:
            DataError: If the part has no such image, or if the file is not a picture of the required size.
        """
        if found := numbered(text, {part: len(held.images) for part, held in self.parts.items()}):
            part, n = found
            return {"source": self._given(self.parts[part].images[n : n + 1])}
        like = self.parts["train"].images.shape[1:]
        return {"source": self._given(photos.read(text.strip(), like)[None])}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the numbers of the pixels. A model that reads patches has fewer positions."""
        height, width, _ = self.parts["train"].images.shape[1:]
        return {"source": [str(n) for n in range(1, height * width + 1)], "target": []}

    def with_test(self, held: Labelled, names: list[str] | None, path: str) -> ImageData:
        """Returns the data with other images as the test part.

        Args:
            held: The images. A label of −1 means that the class is unknown.
            names: The names of the images. None names them by number.
            path: Their file or folder, for messages.
        """
        found = copy(self)
        found.parts = {**self.parts, "test": held}
        found._names_of = {} if names is None else {"test": names}
        alike = hashes(held.images)
        found.notes = (
            *ambiguous({path: found._labelled("test", alike)}, "picture"),
            *repeated({"train": hashes(self.parts["train"].images), path: alike}),
        )
        return found

    def _labelled(self, part: str, alike: Sequence[int]) -> list[tuple[int, int, str]]:
        """Returns the hash, the label and the name of each picture of a part whose class is known."""
        labels, names = self.parts[part].labels.tolist(), self._names_of.get(part)
        named = lambda n: f"{part}:{n + 1}" if names is None else names[n]
        return [(alike[n], label, named(n)) for n, label in enumerate(labels) if label != NONE]

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """Returns the names of the images, or their numbers, for example "test:12"."""
        names = self._names_of.get(part)
        rows = sampled(len(self.parts[part].labels), limit)
        return [f"{part}:{n + 1}" if names is None else names[n] for n in rows]

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """Returns the images, each with the predicted class and, if that is wrong, the correct class."""
        from attnlab.plotting import grid

        labelled = np.flatnonzero(np.asarray(batch["label"]) >= 0)
        shown = np.round(np.asarray(batch["source"])[labelled] * self._deviation + self._mean)
        predicted, truth = (np.asarray(each["label"])[labelled] for each in (answer, batch))
        titles = [
            self.classes[a] if a == b else f"{self.classes[a]} (is {self.classes[b]})"
            for a, b in zip(predicted, truth, strict=True)
        ]
        right = f"{(predicted == truth).sum()} of {len(labelled)} correct, otherwise the true class is in brackets"
        return {f"Test images: {right}": grid(list(shown.astype(np.uint8)), titles)}

    def _given(self, held: Arrays) -> Arrays:
        """Returns bytes [N H W C] as normalised float32 images. It takes numpy and JAX arrays."""
        return (held.astype(np.float32) - self._mean) / self._deviation


def _fingerprint(parts: Mapping[str, Labelled]) -> str:
    digest = hashlib.sha256()
    for part in PARTS:
        for values in parts[part]:
            digest.update(f"{part} {values.shape} ".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
