"""A single attention layer over the pixels of an image, which can learn a convolution (Cordonnier et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.models.checks import check_sizes
from attnlab.models.config import check_attentions
from attnlab.models.shapes import FilteredImageShape, Shape, check_shape
from attnlab.models.vit import add_position, patch_grid
from attnlab.modules.attention import Attention
from attnlab.modules.attention_layer import check_heads
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.position import Position, Quadratic2D
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class ConvolutionProbe(metaclass=Documented):
    """Configuration of a single attention layer over pixels between two linear maps.

    There is no residual, no norm and no feed-forward block. The layer can represent a convolution exactly if three
    conditions hold: one head for each pixel of the kernel, a position encoding that covers the kernel, and scores that
    depend on positions more than on content.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 36
    """Size of the vectors."""
    heads: int = 9
    """Number of heads; must divide `width`. A K × K convolution needs K²."""
    mechanism: Mechanism = Softmax()
    """The attention mechanism; must attend in both directions."""
    position: Position = Quadratic2D()
    """The position encoding. Its `rows` and `columns`, if any, are replaced by those of the image."""
    mechanism_fields: ClassVar[tuple[str, ...]] = ()
    """No role has a field of its own for its mechanism."""

    def __post_init__(self):
        check_sizes(width=self.width)
        check_heads(self.width, self.heads, self.heads)
        check_attentions(self)

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The mechanism, by role."""
        return {"encoder": self.mechanism}

    def create(self, key: PRNGKeyArray, shape: Shape) -> ConvolutionProbeNetwork:
        """Create a network for images of `shape` (`attnlab.tasks.synthetic.filtering.ConvolutionShape`)."""
        shape = check_shape(self, shape, FilteredImageShape)
        return ConvolutionProbeNetwork(key, self, shape)


class ConvolutionProbeNetwork(nnx.Module):
    """The network of a `ConvolutionProbe`, for one example."""

    def __init__(self, key: PRNGKeyArray, config: ConvolutionProbe, shape: FilteredImageShape):
        rows, columns = shape.source.height, shape.source.width
        self.position = patch_grid(config.position, rows, columns).create(
            fold_key(key, "position"), config.width, config.heads
        )
        # Abstract evaluation raises if the encoding does not support the image's size, and computes nothing.
        jax.eval_shape(lambda: self.position.table(rows * columns, jnp.float32))
        self.input_layer = Dense(fold_key(key, "front"), shape.source.channels, config.width)
        self.attention = Attention(fold_key(key, "attention"), config.width, config.heads, config.mechanism)
        self.head = Dense(fold_key(key, "head"), config.width, shape.channels)

    def __call__(
        self, image: Float[Array, "rows columns C"], keep: None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, "rows columns D"]:
        """Return the filtered image, at least float32. `keep` and `key` are unused: no padding, no dropout."""
        return self.outputs_and_maps(image)[0]

    def outputs_and_maps(self, image, keep=None, key=None) -> tuple[Float[Array, "rows columns D"], dict]:
        """Return the filtered image, and the maps {"encoder": [1 H T T]}, or None in it without an observer."""
        rows, columns, channels = image.shape
        i = np.arange(rows * columns, dtype=np.int32)
        x = add_position(
            self.position, self.input_layer(image.reshape(-1, channels)), i, self.position.table(len(i), image.dtype)
        )
        y, maps = self.attention.attend(x, position=self.position)
        y = self.head(y).reshape(rows, columns, -1)
        return y.astype(accumulation_dtype(y.dtype)), {"encoder": None if maps is None else jnp.asarray(maps)[None]}
