"""The problem of finding things in images: which boxes there are, and of what."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.data.batches import Buckets
from attnlab.data.images import scenes
from attnlab.data.images.scenes import Scene, Scenes
from attnlab.data.io.files import DataError, user_path
from attnlab.data.names import PARTS, check_part
from attnlab.data.repeats import repeated
from attnlab.data.rng import generator
from attnlab.tasks.base.batching import even
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.task import Batch, Image, Row, TaskData
from attnlab.tasks.vision.average_precision import Marks, average_precision
from attnlab.tasks.vision.boxes import centred, corners
from attnlab.tasks.vision.matching import Costs, costs

EXAMINED = 16  # images of an examination's batch
NONE = -1  # the label of a box that is not there
SURE = 0.5  # the least score of what is shown and told


@dataclass(frozen=True)
class Detections:
    """What a model that finds things must be built for: images, so many classes, and how many boxes one has at most."""

    image: Image
    classes: int
    most: int


class DetectionData(TaskData):
    """Batches are {"image": [B H W 3] uint8, "boxes": [B M 4] float32, "label": [B M] int32}; label −1: no box.

    Boxes are centred (x, y, width, height), in shares of the image. A model is called with an image [H W 3], its pixels
    less the training part's mean, divided by its standard deviation, and a key; it answers, for each of its layers,
    scores [layers Q classes+1], of which the last is that there is nothing, and boxes [layers Q 4]. The last layer is
    the answer, and all are taught. In training half of the images are turned left to right and half upside down, where
    `flip`.

    Raises DataError where a part has no boxes.
    """

    metric, higher = "ap50", True

    def __init__(self, parts: Mapping[str, Scenes], classes: Sequence[str], flip: bool = False):
        for part, found in parts.items():
            if not any(len(scene.boxes) for scene in found.scenes):
                dropped = [f"{count} {change}" for change, count in found.changes.items()]
                raise DataError(f"the part {part!r} has no boxes{' left: ' if dropped else ''}{', '.join(dropped)}")
        self.classes, self._flip = tuple(classes), flip
        self._scenes = {part: found.scenes for part, found in parts.items()}
        most = max(len(scene.boxes) for found in self._scenes.values() for scene in found)
        self._arrays = {part: _arrays(found, most) for part, found in self._scenes.items()}
        images = self._arrays["train"]["image"]
        height, width, channels = images.shape[1:]
        self.shape = Detections(Image(height, width, channels), len(self.classes), most)
        self._mean = images.mean(axis=(0, 1, 2), dtype=np.float64).astype(np.float32)
        self._deviation = np.maximum(images.std(axis=(0, 1, 2), dtype=np.float64), 1).astype(np.float32)
        self._order = Buckets(np.zeros(len(images)), count=1)
        self.fingerprint = _fingerprint(self._scenes, height, width)
        alike = {part: [scene.digest for scene in found] for part, found in self._scenes.items()}
        self.notes = (*scenes.notes(parts, self.classes), *repeated(alike))

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Images with their boxes, turned round at random."""
        rows = self._order.batch(seed, step, size)[0]
        batch = {name: values[rows] for name, values in self._arrays["train"].items()}
        if not self._flip:
            return batch
        random = generator(seed, step)
        return flipped(batch, *(random.random((2, size)) < 0.5))

    def given(self, batch: Batch) -> Any:
        """The images [B H W 3] as a model is given them, in float32."""
        import jax.numpy as jnp

        mean, deviation = (x[None, None, None] for x in (self._mean, self._deviation))
        return (jnp.asarray(batch["image"]).astype(jnp.float32) - mean) / deviation

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Class, L1 and GIoU of matched boxes, summed over the model's layers; and the three, of the last layer."""
        import jax
        import jax.numpy as jnp

        labels, truth = (jnp.asarray(batch[name]) for name in ("label", "boxes"))
        keys = None if key is None else jax.random.split(key, len(labels))
        scores, boxes = self._seen(model, batch, keys)
        each = jax.vmap(jax.vmap(costs, (0, 0, None, None)))(scores, boxes, labels, truth)
        means = Costs(*(values.sum(axis=0) for values in each)).mean()
        return means.pop("loss").sum(), {name: values[-1] for name, values in means.items()}

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"boxes": [B Q 4] (left, top, right, bottom), "label": [B Q], "score": [B Q]}: each query's likeliest."""
        import jax
        import jax.numpy as jnp

        scores, boxes = self._seen(model, batch, None)
        chances = jax.nn.softmax(scores[:, -1], axis=-1)[..., :-1]
        label = jnp.argmax(chances, axis=-1).astype(jnp.int32)
        return {"boxes": corners(boxes[:, -1]), "label": label, "score": chances.max(axis=-1)}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """The images of a part, or `limit` of them, one with a box among them; what fills them up has none."""
        chosen = self._examined(part, limit)
        return even({name: values[chosen] for name, values in self._arrays[part].items()}, EXAMINED, label=NONE)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"ap50", "ap"}: average precision at an IoU of .5, and over .5, .55 … .95, the mean over classes.

        Besides, "ap50" of each class of which there is a box: "ap50.RBC".
        """
        scenes = [self._scenes[part][n] for n in self._examined(part, limit)]
        if not any(len(scene.boxes) for scene in scenes):
            return {}
        truth = [Marks(scene.boxes, scene.labels) for scene in scenes]
        together = (
            np.concatenate([np.asarray(answer[name]) for answer in answers]) for name in ("boxes", "label", "score")
        )
        found = [Marks(*row) for row in zip(*together, strict=True)][: len(truth)]
        table = average_precision(found, truth, len(self.classes))
        there = ~np.isnan(table[0])
        each = {f"ap50.{self.classes[n]}": float(table[0, n]) for n in np.flatnonzero(there)}
        return {"ap50": float(table[0, there].mean()), "ap": float(table[:, there].mean())} | each

    def with_test(self, found: Scenes, path: str) -> DetectionData:
        """The same problem with other images, those under `path`, as its test; without any box, none is known."""
        other, most = copy(self), max([1, *(len(scene.boxes) for scene in found.scenes)])
        other._scenes = {**self._scenes, "test": found.scenes}
        other._arrays = {**self._arrays, "test": _arrays(found.scenes, most)}
        other.notes = tuple(
            f"{path}: {count} {'box' if count == 1 else 'boxes'} {change}" for change, count in found.changes.items()
        )
        return other

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Each image by its name, with its boxes and those found with a score of at least .5, the surest first.

        A box is its class, the score of one that was found, and left, top, right and bottom in shares of the sides.
        """
        found = []
        examined = [self._scenes[part][n] for n in self._examined(part, limit)]
        known = any(len(scene.boxes) for scene in examined)
        boxes, label, score = (
            np.concatenate([np.asarray(answer[name]) for answer in answers]) for name in ("boxes", "label", "score")
        )
        for n, scene in enumerate(examined):
            there = [_box(self.classes[kind], box) for kind, box in zip(scene.labels, scene.boxes, strict=True)]
            sure = [m for m in np.argsort(-score[n], kind="stable") if score[n, m] >= SURE]
            said = [_box(f"{self.classes[label[n, m]]} {score[n, m]:.3f}", boxes[n, m]) for m in sure]
            found.append(Row(scene.name, "; ".join(there) if known else None, "; ".join(said)))
        return found

    def encode_prompt(self, text: str) -> Batch:
        """{"image": [1 H W 3]}: "test:12", the twelfth image of the test (or of valid, or train), or a picture's file.

        Raises DataError for a number beyond the part, and for a file that is no picture.
        """
        if found := numbered(text, {part: len(arrays["image"]) for part, arrays in self._arrays.items()}):
            part, n = found
            return {"image": self._arrays[part]["image"][n : n + 1]}
        size = self.shape.image.height, self.shape.image.width
        return {"image": scenes.picture(user_path(text.strip()), text.strip(), size)[0][None]}

    def format_answer(self, answer: Batch) -> str:
        """What was found, the surest first: the class, its score, and where it is, in hundredths of the sides."""
        boxes, labels, scores = (np.asarray(answer[name])[0] for name in ("boxes", "label", "score"))
        lines = []
        for n in np.argsort(-scores, kind="stable"):
            if scores[n] >= SURE:
                left, top, right, bottom = (round(100 * float(edge)) for edge in boxes[n])
                lines.append(f"{self.classes[labels[n]]} ({scores[n]:.0%}) at {left}-{right}, {top}-{bottom}")
        return "; ".join(lines) or "nothing"

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """None: an image has no symbols."""
        return {"source": [], "target": []}

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """The images, with the boxes that were found, whole lines, and those that are there, dotted."""
        from attnlab.plotting import Box, grid

        truth, found = corners(np.asarray(batch["boxes"])), np.asarray(answer["boxes"]).clip(0, 1)
        drawn = []
        for n, labels in enumerate(np.asarray(batch["label"])):
            there = [Box(_four(truth[n, m]), "", int(labels[m]), True) for m in np.flatnonzero(labels >= 0)]
            score, label = np.asarray(answer["score"])[n], np.asarray(answer["label"])[n]
            sure = [int(m) for m in np.argsort(-score, kind="stable") if score[m] >= SURE]
            # The surest of a class says for all which colour it has.
            named = {label[m]: m for m in reversed(sure)}
            name = lambda m, label=label, named=named: self.classes[label[m]] if named[label[m]] == m else ""
            drawn.append(there + [Box(_four(found[n, m]), name(m), int(label[m])) for m in sure])
        caption = f"whole lines: found, with a score of {SURE:.0%} or more; dotted: there; a colour a class"
        return {caption: grid(list(np.asarray(batch["image"])), [], drawn, columns=4, side=3.0)}

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"classes": [names]}."""
        return {"classes": list(self.classes)}

    def _seen(self, model: Any, batch: Batch, keys: Any) -> tuple[Any, Any]:
        """What the model answers to each image, in float32 at least: [B layers Q classes+1] and [B layers Q 4]."""
        import jax
        import jax.numpy as jnp

        found = jax.vmap(lambda image, key: model(image, key=key))(self.given(batch), keys)
        # Sums of half-precision exponentials lose the tail.
        return jax.tree.map(lambda each: each.astype(jnp.promote_types(each.dtype, jnp.float32)), found)

    def _examined(self, part: str, limit: int | None) -> np.ndarray:
        """The rows of what is examined."""
        check_part(part, limit)
        boxes = np.array([len(scene.boxes) for scene in self._scenes[part]])
        rows = sampled(len(boxes), limit)
        if not boxes[rows].any():
            # Without a box there is no average.
            rows[0] = boxes.argmax()
        return rows


def flipped(batch: Batch, across: np.ndarray, down: np.ndarray) -> Batch:
    """Images turned left to right where `across` [B], and upside down where `down` [B], with their boxes."""
    image, boxes = batch["image"], batch["boxes"]
    image = np.where(across[:, None, None, None], image[:, :, ::-1], image)
    image = np.where(down[:, None, None, None], image[:, ::-1], image)
    turned = np.stack([across, down], axis=1)[:, None, :]
    middle = np.where(turned, 1 - boxes[..., :2], boxes[..., :2])
    return batch | {"image": image, "boxes": np.concatenate([middle, boxes[..., 2:]], axis=-1)}


def _arrays(found: list[Scene], most: int) -> Batch:
    """Scenes as one batch, filled up to as many boxes each."""
    boxes, labels = np.zeros((len(found), most, 4), np.float32), np.full((len(found), most), NONE, np.int32)
    for n, scene in enumerate(found):
        boxes[n, : len(scene.boxes)], labels[n, : len(scene.boxes)] = centred(scene.boxes), scene.labels
    return {"image": np.stack([scene.image for scene in found]), "boxes": boxes, "label": labels}


def _box(what: str, box: np.ndarray) -> str:
    return " ".join([what, *(f"{float(edge):.4f}" for edge in box)])


def _four(box: np.ndarray) -> tuple[float, float, float, float]:
    left, top, right, bottom = map(float, box)
    return left, top, right, bottom


def _fingerprint(parts: Mapping[str, list[Scene]], *size: int) -> str:
    digest = hashlib.sha256(repr(size).encode())
    for part in PARTS:
        for scene in parts[part]:
            # The bytes of the file: what they are unpacked to differs in its last bits by version of the reader.
            digest.update(f"{part} {scene.name} {scene.digest} {len(scene.boxes)} ".encode())
            digest.update(scene.boxes.tobytes() + scene.labels.tobytes())
    return digest.hexdigest()
