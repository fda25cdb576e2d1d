"""The convolution task: reproduce an unknown convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.data.synthetic import filtering
from attnlab.documented import Documented
from attnlab.plotting import grid
from attnlab.tasks.base import checks
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.example import ModelExample, TaskMaps
from attnlab.tasks.base.models import ImageModel
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.shapes import Image
from attnlab.tasks.base.task import Task, TaskData
from attnlab.tasks.base.text_interface import Batch

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

EXAMINED = 64  # images in an evaluation


@dataclass(frozen=True)
class ConvolutionShape(metaclass=Documented):
    """The shape of the task: what a model from images to images must be built for."""

    source: Image
    """The shape of the input image."""
    channels: int
    """The number of channels of the output image."""


@dataclass(frozen=True)
class Convolution(Task):
    """Images of noise: compute what an unknown convolution makes of them. Scored by the relative error.

    The error is the mean square error divided by the variance. It is 1 for a model that always predicts the mean. The
    weights of the convolution are drawn from `seed` and not shown to the model. It has as many output as input
    channels. Border pixels, where the convolution would reach beyond the image, are not scored.
    """

    size: int = 3
    """The height and the width of the convolution's kernel."""
    channels: int = 3
    """The number of channels of the images."""
    side: int = 8
    """The height and the width of the images in pixels, at least `size`."""
    seed: int = 0
    """The seed of the convolution and of the images, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.counts(self, ["size", "channels"], most=64)
        checks.counts(self, ["side"], least=self.size, most=256)
        checks.seed(self)

    def load(self) -> ConvolutionData:
        """Draws the convolution."""
        return ConvolutionData(self)


class ConvolutionData(TaskData):
    """The data of `Convolution`.

    Batches are {"source", "answers": [B H W C] float32}. Answers that are NaN are not scored. A model is called with an
    image [H W C], and with None as `keep`. It returns an image [H W C].
    """

    metric = Metric("error", low=0)
    maps = TaskMaps("encoder", "encoder")

    def __init__(self, task: Convolution):
        self.task = task
        self.kernel = filtering.kernel(task.seed, task.size, task.channels, task.channels)
        self.shape = ConvolutionShape(Image(task.side, task.side, task.channels), task.channels)
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 2), self._drawn("test", 0, 2)])

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Generates the images of a step, and the convolution's output for them."""
        return self._drawn("train", seed, size, step)

    def loss(
        self, model: ImageModel, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the mean square error over the scored pixels."""
        import jax.numpy as jnp

        answers = jnp.asarray(batch["answers"])
        scored = ~jnp.isnan(answers)
        away = jnp.where(scored, self.answer(model, batch)["image"] - jnp.where(scored, answers, 0), 0)
        return (away * away).sum() / jnp.maximum(scored.sum(), 1).astype(away.dtype), {}

    def answer(self, model: ImageModel, batch: Batch) -> Batch:
        """Returns {"image": [B H W C]}."""
        import jax
        import jax.numpy as jnp

        return {"image": jax.vmap(lambda image: model(image, None))(jnp.asarray(batch["source"]))}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns one batch of up to 64 images."""
        check_part(part, limit)
        return [self._drawn(part, 0, min(EXAMINED, limit or EXAMINED))]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"error"}: the mean square error divided by the variance of the expected answers."""
        expected = self.eval_batches(part, limit)[0]["answers"].astype(np.float64)
        scored = ~np.isnan(expected)
        away = np.asarray(answers[0]["image"], np.float64)[scored] - expected[scored]
        return {"error": float((away**2).mean() / expected[scored].var())}

    def encode_prompt(self, text: str) -> Batch:
        """Returns one image by its number: "test:3" is the third of the test part.

        Raises:
            DataError: If there is no such image.
        """
        found = numbered(text, dict.fromkeys(PARTS[1:], EXAMINED))
        if found is None:
            raise DataError(f"the input {text!r} must name a test image, test:1 … test:{EXAMINED}")
        part, n = found
        return {name: x[n : n + 1] for name, x in self.eval_batches(part)[0].items()}

    def format_answer(self, answer: Batch) -> str:
        """Returns the size of the output image and its root mean square as text."""
        image = np.asarray(answer["image"])[0]
        return f"an image of {' × '.join(map(str, image.shape))}, root mean square {np.sqrt((image**2).mean()):.3f}"

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the pixels, named by row and column."""
        pixels = [f"{row},{column}" for row in range(self.task.side) for column in range(self.task.side)]
        return {"source": pixels, "target": pixels}

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the images."""
        return (np.asarray(batch["source"]),)

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns one image, with its pixels along both axes."""
        pixels = self.tokens(batch)["source"]
        return ModelExample((self.model_inputs(batch)[0][0],), {"encoder": (pixels, pixels)})

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """Returns the first channel of up to four images: input, output of the convolution, and output of the model."""
        expected, predicted = np.asarray(batch["answers"])[:4, ..., 0], np.asarray(answer["image"])[:4, ..., 0]
        predicted = np.where(np.isnan(expected), np.nan, predicted)
        rows = {"input": np.asarray(batch["source"])[:4, ..., 0], "convolution": expected, "model": predicted}
        tiles = [np.clip(0.5 + np.nan_to_num(image) / 6, 0, 1) for images in rows.values() for image in images]
        titles = [title for title, images in rows.items() for _ in images]
        caption = "The first channel of the input, of the convolution's output and of the model's output"
        return {caption: grid(tiles, titles, columns=4)}

    @property
    def vocabulary(self) -> dict[str, object]:
        """The names of the channels, as {"channels": [names]}."""
        return {"channels": [f"channel {n}" for n in range(1, self.task.channels + 1)]}

    def _drawn(self, part: str, seed: int, size: int, step: int = 0) -> Batch:
        random = generator(self.task.seed, PARTS.index(part), seed, step)
        source = random.standard_normal((size, self.task.side, self.task.side, self.task.channels))
        answers = filtering.filtered(source, self.kernel)
        return {"source": source.astype(np.float32), "answers": answers.astype(np.float32)}
