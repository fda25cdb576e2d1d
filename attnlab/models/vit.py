"""The Vision Transformer (Dosovitskiy et al. 2021): an image as a sequence of patches."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.models.classifier import Classifier, ClassifierNetwork
from attnlab.models.config import check_no_embeddings, check_shape, check_sizes
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.patches import Patches
from attnlab.modules.position import Learned2D, Position


@dataclass(frozen=True)
class ViT(Classifier):
    """A classifier of images, cut into squares of `patch` × `patch` pixels, each flattened and mapped linearly.

    `patch` 1 reads an image as its pixels, and with the position none as a plain set of them. A position of rows and
    columns gets the image's own numbers of these, whatever its fields say. `head` is the width of a hidden layer before
    the classes, of tanh, as the paper has it where it trains from nothing; 0 is none. The other fields are those of
    `Classifier`. As it stands it has 203,146 parameters for ten classes of images of 28 × 28.

    Raises ValueError naming the field for what cannot work.
    """

    layers: int = 6
    feedforward: int | None = 128
    position: Position = Learned2D()
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "gelu"
    patch: int = 4
    head: int = 0

    def __post_init__(self):
        super().__post_init__()
        check_sizes(self, "patch")
        if self.head != 0:
            check_sizes(self, "head")

    def create(self, key: PRNGKeyArray, shape: Any) -> ClassifierNetwork:
        """A new network for images of that shape (`attnlab.tasks.Classes` of an `Image`)."""
        check_shape(self, shape, "source", "classes")
        rows, columns = self.grid(shape.source)
        return Classifier.create(replace(self, position=patch_grid(self.position, rows, columns)), key, shape)

    def front(self, key: PRNGKeyArray, source: Any) -> tuple[nnx.Module, int]:
        """What makes a vector of each patch, and how many patches there are."""
        check_no_embeddings(self)
        rows, columns = self.grid(source)
        numbers = self.patch * self.patch * source.channels
        return Patches(self.patch, self.sizes.dense(key, numbers, self.width)), rows * columns

    def scores(self, key: PRNGKeyArray, classes: int) -> nnx.Module:
        """What makes scores of classes of vectors [N D]."""
        return Hidden(key, self.width, self.head, classes) if self.head else super().scores(key, classes)

    def grid(self, source: Any) -> tuple[int, int]:
        """How many rows and columns of patches an image has. Raises ValueError for what is none, or is not divided."""
        if not hasattr(source, "height"):
            raise ValueError(f"model={type(self).__name__} reads images, and this task's data are sequences")
        if source.height % self.patch or source.width % self.patch:
            raise ValueError(f"model.patch={self.patch} must divide the images, {source.height} × {source.width}")
        return source.height // self.patch, source.width // self.patch


class Hidden(nnx.Module):
    """tanh(x w + b) w + b: one hidden layer."""

    def __init__(self, key: PRNGKeyArray, inputs: int, width: int, outputs: int):
        self.hidden = Dense(fold_key(key, "hidden"), inputs, width)
        self.scores = Dense(fold_key(key, "scores"), width, outputs)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N classes"]:
        """In the dtype of x."""
        return self.scores(jnp.tanh(self.hidden(x)))


def patch_grid(position: Position, rows: int, columns: int) -> Position:
    """A position over a grid of so many rows and columns; one that knows of neither stays as it is."""
    known = {field.name for field in fields(position)}
    sizes = {"rows": rows, "columns": columns}
    return replace(position, **{name: size for name, size in sizes.items() if name in known})


def add_position(position: Any, x: Float[Array, "T D"], i: Any, table: Any) -> Float[Array, "T D"]:
    """x with all that a made position adds to vectors: to those of the first layer too, where it adds to each."""
    before = position.per_layer(i, table)
    x = position.add(x, i, table)
    return x if before is None else x + before[0].astype(x.dtype)
