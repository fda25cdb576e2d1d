"""The problem of sorting images."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attnlab.data.batches import Buckets
from attnlab.data.images import images
from attnlab.data.images.images import Labelled
from attnlab.data.names import PARTS, check_part
from attnlab.data.repeats import repeated
from attnlab.data.rng import generator
from attnlab.tasks.base.batching import even
from attnlab.tasks.base.classification import NONE, ClassificationData
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.task import Batch, Classes, Image

EXAMINED = 256  # images of an examination's batch


class Augmentation(NamedTuple):
    """How images are changed in training: moved by up to `shift` pixels each way, half of them turned round."""

    shift: int = 0
    flip: bool = False


class ImageData(ClassificationData):
    """Images of one size, their pixels less the training part's mean, divided by its standard deviation.

    Training batches hold the bytes themselves, {"source": [B H W C] uint8, "label": [B] int32}, for many steps of many
    lanes wait on the device at once; examinations hold what the model is given, in float32. Each seed trains on a
    `share` of its own of the training part, as much of every class. `notes` tell of classes of which a part has none
    or a share takes one image for want of more, and of images that are trained on, too.
    """

    def __init__(
        self,
        parts: Mapping[str, Labelled],
        classes: Sequence[str],
        share: float = 1.0,
        change: Augmentation = Augmentation(),
    ):
        super().__init__(classes)
        self.parts, self._share, self._change = parts, share, change
        self._names_of: dict[str, list[str]] = {}  # of a part's images, where they have names
        train = parts["train"]
        height, width, channels = train.images.shape[1:]
        self.shape = Classes(Image(height, width, channels), len(self.classes))
        # Ten thousand images tell as much as all.
        some = train.images[:: max(1, len(train.images) // 10_000)].astype(np.float32)
        level = some.mean(axis=(0, 1, 2), keepdims=True), some.std(axis=(0, 1, 2), keepdims=True)
        self._mean, self._deviation = level[0], np.maximum(level[1], 1)
        self._rows = lru_cache(maxsize=64)(lambda seed: images.portion(train.labels, share, seed))
        self._order = Buckets(np.zeros(len(self._rows(0))), count=1)
        self.fingerprint = _fingerprint(parts)
        alike = {part: [hash(image.tobytes()) for image in held.images] for part, held in parts.items()}
        self.notes = (*images.absent(parts, self.classes), *images.scarce(train, share), *repeated(alike))

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """{"source": [B H W C] uint8, "label": [B] int32}."""
        rows = self._rows(seed)[self._order.batch(seed, step, size)[0]]
        train = self.parts["train"]
        random = generator(seed, step, *self._change)
        return {"source": images.augmented(train.images[rows], random, *self._change), "label": train.labels[rows]}

    def scores(self, model: Any, batch: Batch, keys: Any = None) -> Any:
        """The model's scores of every class, [B classes]; bytes are made into what it is given here."""
        import jax.numpy as jnp

        source = jnp.asarray(batch["source"])
        source = self._given(source) if source.dtype == jnp.uint8 else source
        return super().scores(model, {**batch, "source": source}, keys)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """The images of a part, or `limit` of them, as the model is given them; what fills them up asks nothing."""
        check_part(part, limit)
        held, labels = self.parts[part]
        rows = sampled(len(labels), limit)
        return even({"source": self._given(held[rows]), "label": labels[rows]}, EXAMINED, label=NONE)

    def encode_prompt(self, text: str) -> Batch:
        """{"source": [1 H W C]}: "test:12", the twelfth image of the test (or of valid, or train), or a picture's file.

        Raises DataError for a number beyond the part, and for a file that is no picture of the size.
        """
        if found := numbered(text, {part: len(held.images) for part, held in self.parts.items()}):
            part, n = found
            return {"source": self._given(self.parts[part].images[n : n + 1])}
        like = self.parts["train"].images.shape[1:]
        return {"source": self._given(images.read(text.strip(), like)[None])}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Numbers, one a pixel: what stands at a place; a model that reads patches has fewer places."""
        height, width, _ = self.parts["train"].images.shape[1:]
        return {"source": [str(n) for n in range(1, height * width + 1)], "target": []}

    def with_test(self, held: Labelled, names: list[str] | None) -> ImageData:
        """The same problem with other images as its test, a label of −1 being none, by their names (None: numbers)."""
        found = copy(self)
        found.parts = {**self.parts, "test": held}
        found._names_of = {} if names is None else {"test": names}
        found.notes = ()
        return found

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """The images by name, or by number: "test:12"."""
        names = self._names_of.get(part)
        rows = sampled(len(self.parts[part].labels), limit)
        return [f"{part}:{n + 1}" if names is None else names[n] for n in rows]

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """The images, each with the class it was given and, where that is wrong, the one it is of."""
        from attnlab.plotting import grid

        asked = np.flatnonzero(np.asarray(batch["label"]) >= 0)
        shown = np.round(np.asarray(batch["source"])[asked] * self._deviation + self._mean)
        said, truth = (np.asarray(each["label"])[asked] for each in (answer, batch))
        titles = [
            self.classes[a] if a == b else f"{self.classes[a]} (is {self.classes[b]})"
            for a, b in zip(said, truth, strict=True)
        ]
        right = f"{(said == truth).sum()} of {len(asked)} right, of the others the class in brackets"
        return {f"images of the test: {right}": grid(list(shown.astype(np.uint8)), titles)}

    def _given(self, held: Any) -> Any:
        """Bytes [N H W C] as the model is given them, float32; numpy's or jax's."""
        return (held.astype(np.float32) - self._mean) / self._deviation


def _fingerprint(parts: Mapping[str, Labelled]) -> str:
    digest = hashlib.sha256()
    for part in PARTS:
        for values in parts[part]:
            digest.update(f"{part} {values.shape} ".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
