"""The data of object detection: the boxes in an image and their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.batches import Buckets
from attnlab.data.images import scenes
from attnlab.data.images.scenes import Scenes
from attnlab.data.io.files import DataError, user_path
from attnlab.data.names import check_part
from attnlab.data.repeats import repeated
from attnlab.data.rng import generator
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.example import ImageAxis, ModelExample, TaskMaps
from attnlab.tasks.base.models import BoxModel
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.shapes import Image
from attnlab.tasks.base.task import Row, TaskData
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.vision.average_precision import Marks, average_precision
from attnlab.tasks.vision.box_arrays import NONE, box_fingerprint, flipped, padded
from attnlab.tasks.vision.box_display import answer_text, box_pictures, box_text, query_names, shown
from attnlab.tasks.vision.boxes import corners
from attnlab.tasks.vision.matching import Costs, costs

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

EXAMINED = 16  # images in an evaluation batch


@dataclass(frozen=True)
class Detections:
    """The shape of the task: what an object detection model must be built for."""

    image: Image
    """The shape of the images."""
    classes: int
    """The number of classes."""
    most: int
    """The largest number of boxes in an image."""


class DetectionData(TaskData):
    """Images with boxes.

    Batches are {"image": [B H W 3] uint8, "boxes": [B M 4] float32, "label": [B M] int32}. A label of −1 means no box.
    Boxes are centred (x, y, width, height), in fractions of the image.

    A model is called with an image [H W 3] and a key. The pixels are normalised by the mean and the standard deviation
    of the training part. The model returns scores [layers Q classes+1], whose last class means "no object", and boxes
    [layers Q 4]. The last layer is the answer, and the loss covers all layers.

    Args:
        parts: The images of "train", "valid" and "test".
        classes: The names of the classes.
        flip: Whether half of the training images are flipped horizontally, and half vertically.

    Raises:
        DataError: If a part has no boxes.
    """

    maps = TaskMaps("cross", "cross", answered=True)
    metric = Metric("ap50", "points", 0, 1, higher=True)
    more_metrics = (Metric("ap", "points", 0, 1, higher=True),)

    def __init__(self, parts: Mapping[str, Scenes], classes: Sequence[str], flip: bool = False):
        for part, found in parts.items():
            if not any(len(scene.boxes) for scene in found.scenes):
                dropped = [f"{count} {change}" for change, count in found.changes.items()]
                raise DataError(f"the part {part!r} has no boxes{' left: ' if dropped else ''}{', '.join(dropped)}")
        self.classes, self._flip = tuple(classes), flip
        self._scenes = {part: found.scenes for part, found in parts.items()}
        most = max(len(scene.boxes) for found in self._scenes.values() for scene in found)
        self._arrays = {part: padded(found, most) for part, found in self._scenes.items()}
        images = self._arrays["train"]["image"]
        height, width, channels = images.shape[1:]
        self.shape = Detections(Image(height, width, channels), len(self.classes), most)
        self._mean = images.mean(axis=(0, 1, 2), dtype=np.float64).astype(np.float32)
        self._deviation = np.maximum(images.std(axis=(0, 1, 2), dtype=np.float64), 1).astype(np.float32)
        self._order = Buckets(np.zeros(len(images)), count=1)
        self.fingerprint = box_fingerprint(self._scenes, height, width)
        alike = {part: [scene.digest for scene in found] for part, found in self._scenes.items()}
        self.notes = (*scenes.notes(parts, self.classes), *repeated(alike))

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns images with their boxes, flipped at random if `flip`."""
        rows = self._order.batch(seed, step, size)[0]
        batch = {name: values[rows] for name, values in self._arrays["train"].items()}
        if not self._flip:
            return batch
        random = generator(seed, step)
        return flipped(batch, *(random.random((2, size)) < 0.5))

    def given(self, batch: Batch) -> Float[Array, "B H W 3"]:
        """Returns the normalised images [B H W 3] in float32, as the model receives them."""
        import jax.numpy as jnp

        mean, deviation = (x[None, None, None] for x in (self._mean, self._deviation))
        return (jnp.asarray(batch["image"]).astype(jnp.float32) - mean) / deviation

    def loss(
        self, model: BoxModel, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the class, L1 and GIoU losses of matched boxes.

        Returns:
            The weighted loss summed over the model's layers, and {"class", "l1", "giou"} of the last layer.
        """
        import jax
        import jax.numpy as jnp

        labels, truth = (jnp.asarray(batch[name]) for name in ("label", "boxes"))
        keys = None if key is None else jax.random.split(key, len(labels))
        scores, boxes = self._seen(model, batch, keys)
        each = jax.vmap(jax.vmap(costs, (0, 0, None, None)))(scores, boxes, labels, truth)
        means = Costs(*(values.sum(axis=0) for values in each)).mean()
        return means.pop("loss").sum(), {name: values[-1] for name, values in means.items()}

    def answer(self, model: BoxModel, batch: Batch) -> Batch:
        """Returns {"boxes": [B Q 4] (left, top, right, bottom), "label": [B Q], "score": [B Q]}.

        The label is each query's most probable class, without "no object", and the score is its probability.
        """
        import jax
        import jax.numpy as jnp

        scores, boxes = self._seen(model, batch, None)
        chances = jax.nn.softmax(scores[:, -1], axis=-1)[..., :-1]
        label = jnp.argmax(chances, axis=-1).astype(jnp.int32)
        return {"boxes": corners(boxes[:, -1]), "label": label, "score": chances.max(axis=-1)}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the images of a part, or `limit` of them, at least one with a box.

        Rows that fill up a batch have no boxes.
        """
        chosen = self._examined(part, limit)
        return equal_batches(
            {name: values[chosen] for name, values in self._arrays[part].items()}, EXAMINED, label=NONE
        )

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"ap50", "ap"}, and {} if there are no true boxes.

        They are the average precision at an IoU of .5, and over .5, .55 … .95, as means over classes. The "ap50" of
        each class that has a true box is also returned, for example "ap50.RBC".
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
        defined = ~np.isnan(table[0])
        each = {f"ap50.{self.classes[n]}": float(table[0, n]) for n in np.flatnonzero(defined)}
        return {"ap50": float(table[0, defined].mean()), "ap": float(table[:, defined].mean())} | each

    def with_test(self, found: Scenes, path: str) -> DetectionData:
        """Returns the data with other images as the test part. If none of them has a box, the truth is unknown.

        Args:
            found: The images.
            path: Their folder or archive, for messages.
        """
        other, most = copy(self), max([1, *(len(scene.boxes) for scene in found.scenes)])
        other._scenes = {**self._scenes, "test": found.scenes}
        other._arrays = {**self._arrays, "test": padded(found.scenes, most)}
        alike = {"train": self._scenes["train"], path: found.scenes}
        twice = repeated({name: [scene.digest for scene in held] for name, held in alike.items()})
        known = self.classes if any(len(scene.boxes) for scene in found.scenes) else ()
        other.notes = (*scenes.notes({path: found}, known), *twice)
        return other

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns each image by name, with its true boxes and the predicted boxes, best first.

        Predicted boxes are those with a score of at least .5. A box is written as its class, the score if it was
        predicted, and left, top, right and bottom as fractions of the sides.
        """
        found = []
        examined = [self._scenes[part][n] for n in self._examined(part, limit)]
        known = any(len(scene.boxes) for scene in examined)
        boxes, label, score = (
            np.concatenate([np.asarray(answer[name]) for answer in answers]) for name in ("boxes", "label", "score")
        )
        for n, scene in enumerate(examined):
            true = [box_text(self.classes[kind], box) for kind, box in zip(scene.labels, scene.boxes, strict=True)]
            predicted = [
                box_text(f"{self.classes[label[n, m]]} {score[n, m]:.3f}", boxes[n, m]) for m in shown(score[n])
            ]
            found.append(Row(scene.name, "; ".join(true) if known else None, "; ".join(predicted)))
        return found

    def encode_prompt(self, text: str) -> Batch:
        """Returns an image as {"image": [1 H W 3]}.

        Args:
            text: The number of an image, for example "test:12" for the twelfth image of the test part (also of valid
                and train), or the path of a picture.

        Raises:
            DataError: If the part has no such image, or if the file is not a picture.
        """
        if found := numbered(text, {part: len(arrays["image"]) for part, arrays in self._arrays.items()}):
            part, n = found
            return {"image": self._arrays[part]["image"][n : n + 1]}
        size = self.shape.image.height, self.shape.image.width
        return {"image": scenes.picture(user_path(text.strip()), text.strip(), size)[0][None]}

    def format_answer(self, answer: Batch) -> str:
        """Returns the predicted boxes, best first: the class, the score, and the position in percent of the sides."""
        return answer_text(self.classes, answer)

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the normalised images."""
        return (self.given(batch),)

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns one image. Queries are numbered; the report names the class of those with a score of at least .5."""
        if answer is None:
            raise ValueError("an example of object detection needs the model's answer, which names the queries")
        numbers = [str(n) for n in range(1, np.asarray(answer["label"]).shape[1] + 1)]
        image = ImageAxis(*batch["image"].shape[1:3])
        axes = {"encoder": (image, image), "query_attention": (numbers, numbers), "cross": (numbers, image)}
        return ModelExample((self.model_inputs(batch)[0][0],), axes, rows=query_names(self.classes, answer))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns no symbols, because an image has none."""
        return {"source": [], "target": []}

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """Returns the images with the predicted boxes as solid lines and the true boxes as dotted lines."""
        return box_pictures(self.classes, batch, answer)

    @property
    def vocabulary(self) -> dict[str, object]:
        """The names of the classes, as {"classes": [names]}."""
        return {"classes": list(self.classes)}

    def _seen(
        self, model: BoxModel, batch: Batch, keys: PRNGKeyArray | None
    ) -> tuple[Float[Array, "B L Q classes+1"], Float[Array, "B L Q 4"]]:
        """Returns the model's scores [B layers Q classes+1] and boxes [B layers Q 4], at least in float32."""
        import jax
        import jax.numpy as jnp

        found = jax.vmap(lambda image, key: model(image, key=key))(self.given(batch), keys)
        # In half precision, the softmax's sum of exponentials loses small terms.
        return jax.tree.map(lambda each: each.astype(jnp.promote_types(each.dtype, jnp.float32)), found)

    def _examined(self, part: str, limit: int | None) -> np.ndarray:
        """Returns the rows of the evaluated images."""
        check_part(part, limit)
        boxes = np.array([len(scene.boxes) for scene in self._scenes[part]])
        rows = sampled(len(boxes), limit)
        if not boxes[rows].any():
            # The average precision of a sample without boxes is undefined.
            rows[0] = boxes.argmax()
        return rows
