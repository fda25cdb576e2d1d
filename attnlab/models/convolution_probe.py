"""One layer of attention over the pixels of an image: is it a convolution? (Cordonnier et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.mechanisms import Mechanism, Softmax
from attnlab.models.config import check_attentions, check_shape, check_sizes
from attnlab.models.vit import add_position, patch_grid
from attnlab.modules.attention import Attention, check_heads
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.position import Position, Quadratic2D
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class ConvolutionProbe:
    """A linear map of each pixel to `width`, one attention with `heads`, a linear map to the channels asked for.

    No residual, no norm, no feed-forward layer: with a head for each pixel of its window, a position that can look
    that far off, and scores that do not drown it, this is a convolution exactly. A position of a grid is laid over
    the image's own rows and columns.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 36
    heads: int = 9
    mechanism: Mechanism = Softmax()
    position: Position = Quadratic2D()

    def __post_init__(self):
        check_sizes(self, "width")
        check_heads(self.width, self.heads, self.heads)
        check_attentions(self)

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The one."""
        return {"encoder": self.mechanism}

    def watched(self, watch) -> ConvolutionProbe:
        """The same with the mechanism put through `watch`."""
        return replace(self, mechanism=watch(self.mechanism))

    def create(self, key: PRNGKeyArray, shape: Any) -> ConvolutionProbeNetwork:
        """A new network for images of that shape (`attnlab.tasks.synthetic.filtering.ConvolutionShape`)."""
        check_shape(self, shape, "source", "channels")
        return ConvolutionProbeNetwork(key, self, shape)


class ConvolutionProbeNetwork(nnx.Module):
    """The network of a `ConvolutionProbe`; one example."""

    def __init__(self, key: PRNGKeyArray, config: ConvolutionProbe, shape: Any):
        rows, columns = shape.source.height, shape.source.width
        self.position = patch_grid(config.position, rows, columns).create(
            fold_key(key, "position"), config.width, config.heads
        )
        # Asked for its shape alone: raises where the position ends before the image does.
        jax.eval_shape(lambda: self.position.table(rows * columns, jnp.float32))
        self.front = Dense(fold_key(key, "front"), shape.source.channels, config.width)
        self.attention = Attention(fold_key(key, "attention"), config.width, config.heads, config.mechanism)
        self.head = Dense(fold_key(key, "head"), config.width, shape.channels)

    def __call__(
        self, image: Float[Array, "rows columns C"], keep: None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, "rows columns D"]:
        """The image as it was filtered, in float32 at least. There is no padding, and no dropout."""
        return self.look(image)[0]

    def look(self, image, keep=None, key=None) -> tuple[Float[Array, "rows columns D"], dict]:
        """The filtered image, and what a watched attention saw: {"encoder": [1 H T T] or None}."""
        rows, columns, channels = image.shape
        i = np.arange(rows * columns, dtype=np.int32)
        x = add_position(
            self.position, self.front(image.reshape(-1, channels)), i, self.position.table(len(i), image.dtype)
        )
        y, seen = self.attention.attend(x, position=self.position)
        y = self.head(y).reshape(rows, columns, -1)
        return y.astype(accumulation_dtype(y.dtype)), {"encoder": None if seen is None else jnp.asarray(seen)[None]}
