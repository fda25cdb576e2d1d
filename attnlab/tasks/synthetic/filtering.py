"""To do what a convolution does, with the convolution unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.data.synthetic import filtering
from attnlab.plotting import grid
from attnlab.tasks.base import checks
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.task import Batch, Image, Task, TaskData

EXAMINED = 64  # images of an examination


@dataclass(frozen=True)
class ConvolutionShape:
    """What a model that turns images into images must be built for: what it reads, and the channels it answers."""

    source: Image
    channels: int


@dataclass(frozen=True)
class Convolution(Task):
    """Images of noise, `side` × `side` pixels of `channels`: say what a convolution of `size` × `size` makes of them.

    Its weights, to as many channels, are drawn by `seed` and told to nobody; pixels at the border, where it would
    reach beyond the image, are not asked for. Scored by the error: the mean square over the variance, 0 … 1 for
    whoever says at least the mean.
    """

    size: int = 3
    channels: int = 3
    side: int = 8
    seed: int = 0

    def __post_init__(self):
        checks.counts(self, ["size", "channels"], most=64)
        checks.counts(self, ["side"], least=self.size, most=256)
        checks.seed(self)

    def load(self) -> ConvolutionData:
        """Draw the filter."""
        return ConvolutionData(self)


class ConvolutionData(TaskData):
    """The problem of `Convolution`. Batches are {"source", "answers": [B H W C] float32}; NaN answers ask nothing.

    A model is called with an image [H W C], None and a key, and answers one [H W C].
    """

    metric, higher = "error", False

    def __init__(self, task: Convolution):
        self.task = task
        self.kernel = filtering.kernel(task.seed, task.size, task.channels, task.channels)
        self.shape = ConvolutionShape(Image(task.side, task.side, task.channels), task.channels)
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 2), self._drawn("test", 0, 2)])

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Images drawn for this step, and what the filter makes of them."""
        return self._drawn("train", seed, size, step)

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """The mean square error over what is asked."""
        import jax.numpy as jnp

        answers = jnp.asarray(batch["answers"])
        asked = ~jnp.isnan(answers)
        away = jnp.where(asked, self.answer(model, batch)["image"] - jnp.where(asked, answers, 0), 0)
        return (away * away).sum() / jnp.maximum(asked.sum(), 1).astype(away.dtype), {}

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"image": [B H W C]}."""
        import jax
        import jax.numpy as jnp

        return {"image": jax.vmap(lambda image: model(image, None))(jnp.asarray(batch["source"]))}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """One batch of up to 64 images."""
        check_part(part, limit)
        return [self._drawn(part, 0, min(EXAMINED, limit or EXAMINED))]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"error"}: the mean square error over the variance of the answers wanted."""
        wanted = self.eval_batches(part, limit)[0]["answers"].astype(np.float64)
        asked = ~np.isnan(wanted)
        away = np.asarray(answers[0]["image"], np.float64)[asked] - wanted[asked]
        return {"error": float((away**2).mean() / wanted[asked].var())}

    def encode_prompt(self, text: str) -> Batch:
        """One image by its number: "test:3", the third of the test. Raises DataError for what is none."""
        found = numbered(text, dict.fromkeys(PARTS[1:], EXAMINED))
        if found is None:
            raise DataError(f"the input {text!r} must name a test image, test:1 … test:{EXAMINED}")
        part, n = found
        return {name: x[n : n + 1] for name, x in self.eval_batches(part)[0].items()}

    def format_answer(self, answer: Batch) -> str:
        """How large what it answers is."""
        image = np.asarray(answer["image"])[0]
        return f"an image of {' × '.join(map(str, image.shape))}, root mean square {np.sqrt((image**2).mean()):.3f}"

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The pixels by row and column."""
        pixels = [f"{row},{column}" for row in range(self.task.side) for column in range(self.task.side)]
        return {"source": pixels, "target": pixels}

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """The first channel of four images: read, as the filter makes it, as the model does."""
        wanted, said = np.asarray(batch["answers"])[:4, ..., 0], np.asarray(answer["image"])[:4, ..., 0]
        said = np.where(np.isnan(wanted), np.nan, said)
        rows = {"read": np.asarray(batch["source"])[:4, ..., 0], "convolved": wanted, "attention": said}
        tiles = [np.clip(0.5 + np.nan_to_num(image) / 6, 0, 1) for images in rows.values() for image in images]
        titles = [title for title, images in rows.items() for _ in images]
        caption = "One channel of what was read, what the convolution makes of it, and what attention does"
        return {caption: grid(tiles, titles, columns=4)}

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"channels": [names]}."""
        return {"channels": [f"channel {n}" for n in range(1, self.task.channels + 1)]}

    def _drawn(self, part: str, seed: int, size: int, step: int = 0) -> Batch:
        random = generator(self.task.seed, PARTS.index(part), seed, step)
        source = random.standard_normal((size, self.task.side, self.task.side, self.task.channels))
        answers = filtering.filtered(source, self.kernel)
        return {"source": source.astype(np.float32), "answers": answers.astype(np.float32)}
