"""An encoder that classifies sequences of symbols or of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms import Mechanism
from attnlab.models.checks import check_names, check_no_embeddings
from attnlab.models.config import StackConfig
from attnlab.models.encoder import Encoder
from attnlab.models.shapes import ClassShape, ImageShape, Shape, Source, TokenShape, VectorShape, check_shape
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.parameter import NoDecay
from attnlab.ops.precision import accumulation_dtype
from attnlab.pattern import Pattern, period

POOLS = ("mean", "token")


@dataclass(frozen=True)
class Classifier(StackConfig):
    """Configuration of an encoder that classifies a whole sequence, or each position if the task asks for that.

    The other fields are those of `StackConfig`. `mechanism` must attend in both directions. With `pool="token"` the
    first position must also see all others in one layer.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field. What depends on the
            sequence length is checked by `create`, everything else by the constructor.
    """

    pool: Literal["mean", "token"] = "mean"
    """How a whole sequence becomes one vector.

    "mean" averages its vectors. "token" takes the vector of a learned token before the sequence, which has no position
    (Devlin et al. 2019; Dosovitskiy et al. 2021).
    """
    ties = False  # True in a subclass that can score against its embedding

    def __post_init__(self):
        super().__post_init__()
        check_names(pool=(self.pool, POOLS))
        if self.tied and not self.ties:
            raise ValueError(f"model.tied=True is not supported by {type(self).__name__}: classes have no embedding")

    @property
    def attentions(self) -> dict[str, Mechanism | Pattern]:
        """The mechanism of the encoder, by role."""
        return {"encoder": self.mechanism}

    def create(self, key: PRNGKeyArray, shape: Shape) -> ClassifierNetwork:
        """Create a network for examples of `shape` (`attnlab.tasks.Classes` of `Tokens` or `Frames`)."""
        shape = check_shape(self, shape, ClassShape)
        return ClassifierNetwork(key, self, shape, *self.input_layer(fold_key(key, "front"), shape.source))

    def input_layer(self, key: PRNGKeyArray, source: Source) -> tuple[nnx.Module, int]:
        """Create the module that maps a source to vectors [T D].

        Args:
            key: Key for the initial parameters.
            source: Shape of the source, with `vocabulary` (symbols) or `features` (vectors).

        Returns:
            The module, and the maximum length T.

        Raises:
            ValueError: The source is not a sequence, or has no embeddings to leave unscaled.
        """
        if isinstance(source, TokenShape):
            return Embed(key, source.vocabulary, self.width, self.scale_embeddings), source.length
        check_no_embeddings(self.scale_embeddings)
        if isinstance(source, VectorShape):
            return self.sizes.dense(key, source.features, self.width), source.length
        hint = "images; use model=vit" if isinstance(source, ImageShape) else f"{type(source).__name__.lower()}"
        raise ValueError(f"model={type(self).__name__} needs sequences, but this task's data are {hint}")

    def scores(self, key: PRNGKeyArray, classes: int) -> nnx.Module:
        """Create the module that maps vectors [N D] to logits [N classes]."""
        return Dense(key, self.width, classes)


class ClassifierNetwork(nnx.Module):
    """The network of a `Classifier`, for one example.

    Raises:
        ValueError: `config.pool` is "token", and the token would not see the whole sequence through the mechanism.
    """

    def __init__(self, key: PRNGKeyArray, config: Classifier, shape: ClassShape, input_layer: nnx.Module, length: int):
        self.config, self.each = config, shape.each
        self.input_layer = input_layer
        begins = config.pool == "token" and not shape.each
        if begins and not any(each.sees_all(length + 1) for each in period(config.mechanism)):
            raise ValueError(
                f"model.pool=token is not supported with model.mechanism={config.mechanism}: the token does not see "
                f"all {length} positions; use model.pool=mean, or for example model.mechanism=longformer"
            )
        self.token = NoDecay(jax.random.normal(fold_key(key, "token"), (config.width,)) * 0.02) if begins else None
        self.encoder = Encoder(fold_key(key, "encoder"), config, length)
        self.head = config.scores(fold_key(key, "head"), shape.classes)

    def __call__(
        self,
        source: Int[Array, " T"] | Float[Array, "T F"] | Float[Array, "rows columns C"],
        keep: Bool[Array, " T"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, " classes"] | Float[Array, "T classes"]:
        """Return the logits of the classes.

        Args:
            source: Symbols, vectors or an image.
            keep: False marks padding. Positions count padding, so it belongs after the sequence. None means no padding.
            key: Key for dropout. None means no dropout.

        Returns:
            Logits, at least float32: [classes], or [T classes] if each position is classified.
        """
        return self.outputs_and_maps(source, keep, key)[0]

    def outputs_and_maps(self, source, keep=None, key=None) -> tuple[Float[Array, "..."], dict]:
        """Return the logits, and the attention maps {"encoder": [L H T T], or None if not observed}."""
        x, maps = self.read(source, keep, key)
        if not self.each:
            x = (x[0] if self.token is not None else _mean(x, keep))[None]
        scores = self.head(x)
        return (scores if self.each else scores[0]).astype(accumulation_dtype(scores.dtype)), maps

    def read(self, source, keep=None, key=None) -> tuple[Float[Array, "N D"], dict]:
        """Return the encoder's output and attention maps. If there is a token, its vector is row 0 of the output."""
        dtype = jnp.dtype(self.config.dtype)
        x = (
            self.input_layer(source, dtype)
            if isinstance(self.input_layer, Embed)
            else self.input_layer(source.astype(dtype))
        )
        return self.encoder(x, keep, key, None if self.token is None else self.token[...])


def _mean(x: Float[Array, "T D"], keep: Bool[Array, " T"] | None) -> Float[Array, " D"]:
    """Average the rows that are not padding, summing in at least float32. Returns zero if all rows are padding."""
    if keep is None:
        return x.mean(axis=0)
    held = jnp.where(keep[:, None], x, 0).astype(accumulation_dtype(x.dtype))
    count = jnp.maximum(keep.sum(), 1).astype(held.dtype)
    return (held.sum(axis=0) / count).astype(x.dtype)
