"""The Vision Transformer (Dosovitskiy et al. 2021), which reads an image as a sequence of patches."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, overload

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.models.checks import check_no_embeddings, check_sizes
from attnlab.models.classifier import Classifier, ClassifierNetwork
from attnlab.models.shapes import ClassShape, ImageShape, Shape, Source, check_shape
from attnlab.modules.block import plus
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.patches import Patches
from attnlab.modules.position import Learned2D, Position, PositionEncoding
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.pattern import Pattern


@dataclass(frozen=True)
class ViT(Classifier):
    """Configuration of an image classifier that reads square patches, each flattened and mapped linearly.

    The other fields are those of `Classifier`. The default configuration has 203,146 parameters for ten classes of
    28 × 28 images.

    Differences from the paper: by default, vectors are averaged instead of reading a class token (`pool`), and
    positions are learned for rows and columns instead of for each patch (the paper's appendix D.4 compares them).

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    layers: int = 6
    """Number of layers."""
    feedforward: int | None = 128
    """Width of the hidden layer of the feed-forward blocks. None: 4 · `width`. 0: no feed-forward blocks."""
    position: Position | Pattern = Learned2D()
    """The position encoding. Its `rows` and `columns`, if any, are replaced by those of the image's patches."""
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "glu", "reglu", "geglu", "swiglu"] = "gelu"
    """Activation of the feed-forward blocks. Those that end in "glu" add a third linear map, a gate."""
    patch: int = 4
    """Side of a patch in pixels; must divide both sides of the image. 1 reads single pixels."""
    head: int = 0
    """Width of a hidden tanh layer before the logits, which the paper uses in pre-training. 0: no hidden layer."""

    def __post_init__(self):
        super().__post_init__()
        check_sizes(patch=self.patch)
        if self.head != 0:
            check_sizes(head=self.head)

    def create(self, key: PRNGKeyArray, shape: Shape) -> ClassifierNetwork:
        """Create a network for images of `shape` (`attnlab.tasks.Classes` of an `Image`)."""
        shape = check_shape(self, shape, ClassShape)
        rows, columns = self.grid(shape.source)
        return Classifier.create(replace(self, position=patch_grid(self.position, rows, columns)), key, shape)

    def input_layer(self, key: PRNGKeyArray, source: Source) -> tuple[nnx.Module, int]:
        """Create the module that maps an image to patch vectors [T D], and return it with the number of patches T."""
        check_no_embeddings(self.scale_embeddings)
        rows, columns = self.grid(source)
        numbers = self.patch * self.patch * self._image(source).channels
        return Patches(self.patch, self.sizes.dense(key, numbers, self.width)), rows * columns

    def scores(self, key: PRNGKeyArray, classes: int) -> nnx.Module:
        """Create the module that maps vectors [N D] to logits [N classes]."""
        return Hidden(key, self.width, self.head, classes) if self.head else super().scores(key, classes)

    def grid(self, source: Source) -> tuple[int, int]:
        """Return the numbers of rows and columns of patches in an image.

        Raises:
            ValueError: The source is not an image, or `patch` does not divide its sides.
        """
        image = self._image(source)
        if image.height % self.patch or image.width % self.patch:
            raise ValueError(
                f"model.patch={self.patch} must divide the sides of the images, {image.height} × {image.width}"
            )
        return image.height // self.patch, image.width // self.patch

    def _image(self, source: Source) -> ImageShape:
        if not isinstance(source, ImageShape):
            raise ValueError(f"model={type(self).__name__} needs images, but this task's data are sequences")
        return source


class Hidden(nnx.Module):
    """A classification head with one hidden layer: tanh(x w₁ + b₁) w₂ + b₂."""

    def __init__(self, key: PRNGKeyArray, inputs: int, width: int, outputs: int):
        self.hidden = Dense(fold_key(key, "hidden"), inputs, width)
        self.scores = Dense(fold_key(key, "scores"), width, outputs)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N classes"]:
        """Return the logits, in the dtype of x."""
        return self.scores(jnp.tanh(self.hidden(x)))


@overload
def patch_grid(position: Position, rows: int, columns: int) -> Position: ...
@overload
def patch_grid(position: Position | Pattern, rows: int, columns: int) -> Position | Pattern: ...
def patch_grid(position: Position | Pattern, rows: int, columns: int) -> Position | Pattern:
    """Return `position` with its fields `rows` and `columns`, as far as it has them, set to those given.

    Args:
        position: The configuration of a position encoding, or a pattern of them.
        rows: Number of rows of the grid.
        columns: Number of columns of the grid.
    """
    if isinstance(position, Pattern):
        return Pattern(tuple(patch_grid(each, rows, columns) for each in position.entries))
    known = {field.name for field in fields(position)}
    sizes = {"rows": rows, "columns": columns}
    return replace(position, **{name: size for name, size in sizes.items() if name in known})


def add_position(
    position: PositionEncoding, x: Float[Array, "T D"], i: Int[ArrayOrNumpy, " T"], table: Array | None
) -> Float[Array, "T D"]:
    """Return x plus all that a created position adds to it: to the input, and to that of the first self-attention.

    Args:
        position: The position encoding.
        x: The input.
        i: Positions of the rows of x.
        table: The result of `position.table`, or None.
    """
    places = position.per_layer(i, table)
    return plus(position.add(x, i, table), None if places is None else places[0])
