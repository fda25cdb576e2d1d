"""Image generation: make images like those of a data set from random numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.tasks.base import checks
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.example import ModelExample, TaskMaps, places
from attnlab.tasks.base.models import ImagePlayers
from attnlab.tasks.base.shapes import Image
from attnlab.tasks.base.task import Task, TaskData
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.vision import image_distance
from attnlab.tasks.vision.features import Features
from attnlab.tasks.vision.images import FashionMNIST
from attnlab.tasks.vision.pictures import ImageData

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

EXAMINED = 250  # images in an evaluation batch
NEIGHBOURS = 10_000  # training images among which the nearest neighbours of generated images are searched
SHADES = " .:-=+*#%@"


@dataclass(frozen=True)
class Generation(Task):
    """Images like those of another task, from random numbers and without labels. Scored by the Fréchet distance.

    `samples` generated images are compared with all images of the evaluated part, by the 64 features of a small
    classifier (`attnlab.tasks.vision.features`). The classifier is trained on the training part when it is first
    needed, which takes some ten seconds. The metrics are:

    - "frechet": the Fréchet distance. - "kernel": the squared MMD with a cubic kernel. - "diversity": how evenly the
    generated images are distributed over the classes, as the classifier sees them. - "frechet.real" (test only): the
    distance of as many training images, or of all if there are fewer. It is the floor. - "frechet.noise" (test only):
    the distance of uniform noise.

    These are not the published FID and KID, which use the features of Inception. Validation during training generates
    512 images at most. Fewer images give larger distances.
    """

    training_only_fields = ("latent",)

    images: Task = FashionMNIST()
    """The task of image classification whose images are imitated."""
    latent: int = 64
    """The number of random normal numbers from which an image is generated."""
    samples: int = 5_000
    """The number of generated images in an evaluation, at least 2."""
    classifier_steps: int = 800
    """The number of training steps of the classifier."""
    seed: int = 0
    """The seed of the random numbers, in 0 … 2³²−1."""

    def __post_init__(self):
        if not isinstance(self.images, Task):
            raise ValueError(
                f"task.images={self.images!r} must be an image classification task, for example fashion-mnist"
            )
        checks.counts(self, ["latent"], most=65_536)
        checks.counts(self, ["samples"], least=2, most=1_000_000)
        checks.counts(self, ["classifier_steps"], most=1_000_000)
        checks.seed(self)

    def load(self) -> ImageGeneration:
        """Loads the images.

        Raises:
            ValueError: If the task `images` is not one of image classification.
            DataError: If that task's data are not available.
        """
        try:
            found = self.images.load()
        except (ValueError, DataError) as error:
            if not str(error).startswith("task."):
                raise
            # The inner task names its fields as if it were the task of the study.
            raise type(error)(f"task.images.{str(error).removeprefix('task.')}") from error
        if not isinstance(found, ImageData):
            raise ValueError(f"task.images={type(self.images).__name__} must be an image classification task")
        return ImageGeneration(self, found)


@dataclass(frozen=True)
class Generated:
    """The shape of the task: what a model that generates images must be built for."""

    image: Image
    """The shape of the images."""
    latent: int
    """The number of random numbers."""


class ImageGeneration(TaskData):
    """The data of `Generation`, with the losses of a generator and a discriminator.

    A model's `networks()` are a generator, latent [Z] -> image [H W C] in 0 … 1, and a discriminator, image -> score.
    Both are pytrees and are called with one example. Latent numbers are drawn on the host and are part of the batch.
    """

    metric = Metric("frechet", low=0)
    maps = TaskMaps("image", "image")
    more_metrics = (Metric("kernel"), Metric("diversity", low=0, high=1, higher=True))

    def __init__(self, task: Generation, pictures: ImageData):
        self.task, self._pictures, self.parts = task, pictures, pictures.parts
        self.classes = pictures.classes
        if not isinstance(pictures.shape.source, Image):
            raise TypeError(f"expected the shape of images, got {pictures.shape.source}")
        self.shape = Generated(pictures.shape.source, task.latent)
        given = f"{pictures.fingerprint} {task.latent} {task.samples} {task.classifier_steps} {task.seed}"
        self.fingerprint = hashlib.sha256(given.encode()).hexdigest()
        self.notes = pictures.notes
        self._known: dict[str, np.ndarray] = {}

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns {"source": [B H W C] uint8, "latent": [B Z] float32}."""
        source = self._pictures.batch(seed, step, size)["source"]
        return {"source": source, "latent": self._latent(size, "train", seed, step)}

    def loss(
        self, model: ImagePlayers, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Returns the sum of the hinge losses of both players (Lim and Ye 2017; Zhang et al. 2019, equation 4).

        L_D = E max(0, 1 − D(x)) + E max(0, 1 + D(G(z))) with G held constant, and L_G = −E D(G(z)) with D held
        constant. The gradient of the sum with respect to each player is that of its own loss. The value of the sum has
        no meaning. `key` is not used.

        Returns:
            The sum, and {"d_loss", "g_loss", "real", "fake"}. The last two are mean scores of D.
        """
        import jax
        import jax.numpy as jnp

        generator, discriminator = model.networks()
        made = jax.vmap(generator)(jnp.asarray(batch["latent"]))
        real = jax.vmap(discriminator)(jnp.asarray(batch["source"]).astype(made.dtype) / 255)
        # Generated images are not concatenated with the real ones. The compiler recognises the same computation on
        # generated images below and executes it once.
        fake = jax.vmap(discriminator)(jax.lax.stop_gradient(made))
        d_loss = jnp.maximum(0, 1 - real).mean() + jnp.maximum(0, 1 + fake).mean()
        g_loss = -jax.vmap(jax.lax.stop_gradient(discriminator))(made).mean()
        found = {"d_loss": d_loss, "g_loss": g_loss, "real": real.mean(), "fake": fake.mean()}
        return d_loss + g_loss, found

    def answer(self, model: ImagePlayers, batch: Batch) -> Batch:
        """Returns {"image": [B H W C]} in 0 … 1, in float32."""
        import jax
        import jax.numpy as jnp

        generator, _ = model.networks()
        return {"image": jax.vmap(generator)(jnp.asarray(batch["latent"])).astype(jnp.float32)}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns batches of 250 like those of training.

        The latent numbers are always the same. The part's images are repeated as often as needed. Rows that fill up the
        last batch are not scored.
        """
        count, images = self._count(part, limit), self.parts[part].images
        latent = self._latent(self.task.samples, part)[:count]
        return equal_batches({"source": images[np.arange(count) % len(images)], "latent": latent}, EXAMINED)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"frechet", "kernel", "diversity"} of the generated images, compared with all images of the part.

        For the test part, it also returns {"frechet.real", "frechet.noise"}, the distances of as many training images
        and of uniform noise.
        """
        count = self._count(part, limit)
        made, chances = self._features(np.concatenate([np.asarray(answer["image"]) for answer in answers])[:count])
        real = self._real(part)
        found = {
            "frechet": image_distance.frechet(made, real),
            # As many real images as generated ones suffice: all pairs are compared, and the estimate is unbiased.
            "kernel": image_distance.kernel(made, _spread(real, count)),
            "diversity": image_distance.diversity(chances),
        }
        if part != "test":
            return found
        noise = self._random("test", 1).random((count, *self.parts["test"].images.shape[1:]), np.float32)
        baselines = {"real": _spread(self._real("train"), count), "noise": self._features(noise)[0]}
        return found | {f"frechet.{name}": image_distance.frechet(x, real) for name, x in baselines.items()}

    def encode_prompt(self, text: str) -> Batch:
        """Returns the latent numbers that a seed gives, for example "7".

        Raises:
            DataError: If the text is not a whole number.
        """
        # `isdigit` and `int` also accept digits of other scripts.
        if not (text.strip().isascii() and text.strip().isdigit()):
            raise DataError(f"the input {text!r} must be a whole number, the seed of the image")
        return {"latent": self._latent(1, "train", int(text))}

    def format_answer(self, answer: Batch) -> str:
        """Returns the class that the classifier predicts, and the image in characters.

        A line of characters stands for two rows of pixels.
        """
        image = np.asarray(answer["image"])[0]
        grey = image.mean(axis=2)[: len(image) // 2 * 2].reshape(len(image) // 2, 2, -1).mean(axis=1)
        shades = np.array(list(SHADES))[np.minimum((grey * len(SHADES)).astype(int), len(SHADES) - 1)]
        return "\n".join([self._title(self._features(image[None])[1][0]), *("".join(row).rstrip() for row in shades)])

    def answer_line(self, answer: Batch) -> str:
        """Returns the class that the classifier predicts, and its probability."""
        return self._title(self._features(np.asarray(answer["image"])[:1])[1][0])

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the latent numbers."""
        return (np.asarray(batch["latent"]),)

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns the latent numbers of one image. The generator attends at half of the image's resolution."""
        positions = places(self.shape.image.width // 2, self.shape.image.height // 2)
        return ModelExample((self.model_inputs(batch)[0][0],), {"image": (positions, positions)})

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns no symbols, because the input has none."""
        return {"source": [], "target": []}

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """Returns the generated images with their predicted classes, and the training images with the nearest features.

        Both are grids, by caption.
        """
        from attnlab.plotting import grid

        made = np.asarray(answer["image"])
        features, chances = self._features(made)
        images, known = (_spread(each, NEIGHBOURS) for each in (self._images("train"), self._real("train")))
        squared = (features**2).sum(axis=1)[:, None] + (known**2).sum(axis=1)[None, :] - 2 * features @ known.T
        return {
            "Unselected images generated from random numbers, with the classifier's predictions": grid(
                list(made), [self._title(each) for each in chances]
            ),
            f"The nearest of {len(images):,} training images to each, with the distance of their features": grid(
                list(images[squared.argmin(axis=1)]), [f"{np.sqrt(max(0, each.min())):.1f}" for each in squared]
            ),
        }

    @property
    def vocabulary(self) -> dict[str, object]:
        """The names of the classifier's classes, as {"classes": [names]}."""
        return {"classes": list(self.classes)}

    @cached_property
    def _features(self) -> Features:
        """The classifier. It is trained once, when it is first used."""
        return Features(self.parts["train"], len(self.classes), self.task.classifier_steps)

    def _real(self, part: str) -> np.ndarray:
        """Returns the features of `_images`."""
        if part not in self._known:
            self._known[part] = self._features(self._images(part) / np.float32(255))[0]
        return self._known[part]

    def _images(self, part: str) -> np.ndarray:
        """Returns the images of a part. Of the training part, it returns a limited number."""
        images = self.parts[part].images
        return _spread(images, max(NEIGHBOURS, self.task.samples)) if part == "train" else images

    def _title(self, chances: np.ndarray) -> str:
        return f"{self.classes[int(chances.argmax())]} ({chances.max():.0%})"

    def _latent(self, size: int, part: str, *more: int) -> np.ndarray:
        return self._random(part, 0, *more).standard_normal((size, self.task.latent), np.float32)

    def _random(self, part: str, *more: int) -> np.random.Generator:
        return generator(self.task.seed, PARTS.index(part), *more)

    def _count(self, part: str, limit: int | None) -> int:
        check_part(part, limit)
        return self.task.samples if limit is None else min(limit, self.task.samples)


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """Returns at most `most` of the rows, evenly spaced from first to last."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
