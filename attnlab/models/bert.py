"""BERT: a bidirectional encoder that fills in masked words and classifies (Devlin et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.classifier import Classifier, ClassifierNetwork
from attnlab.models.shapes import ClassShape, Shape, TokenShape, check_shape
from attnlab.modules.dense import fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position import Learned, Position
from attnlab.ops.layer import gelu
from attnlab.ops.lookup import lookup


@dataclass(frozen=True)
class Bert(Classifier):
    """Configuration of a sentence classifier that can also predict masked words.

    Word logits come from a dense layer, a norm and a product with the embedding table (Devlin et al. 2019, section
    3.1). The other fields are those of `Classifier`.

    Differences from the paper: layers are pre-norm by default, there are no segment embeddings because sentences are
    single, and embeddings are scaled instead of normalised. Differences from the authors' code: no dense layer with
    tanh stands between the token and the classes, dropout is applied within feed-forward blocks instead of to the
    attention weights, and initial weights are those of `initialiser`, not Gaussian of deviation 0.02.
    """

    pool: Literal["mean", "token"] = "token"
    """How a whole sequence becomes one vector: its "mean", or a learned "token" before it."""
    position: Position = Learned()
    """The position encoding."""
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "glu", "reglu", "geglu", "swiglu"] = "gelu"
    """Activation of the feed-forward blocks."""
    dropout: float = 0.1
    """Dropout probability, at least 0 and below 1."""
    tied: bool = True
    """True: compute word logits as products with the embedding table. False: with a table of their own."""
    norm_eps: float = 1e-12
    """The ε that the norms add to the variance, at least 1e-37 and below 1."""
    ties = True

    def create(self, key: PRNGKeyArray, shape: Shape) -> BertNetwork:
        """Create a network for sentences (`attnlab.tasks.Classes` of `Tokens`). Raises ValueError for others."""
        shape = check_shape(self, shape, ClassShape)
        vocabulary = check_shape(self, shape.source, TokenShape).vocabulary
        return BertNetwork(key, self, shape, vocabulary, *self.input_layer(fold_key(key, "front"), shape.source))


class BertNetwork(ClassifierNetwork):
    """The network of a `Bert`, for one example."""

    def __init__(
        self,
        key: PRNGKeyArray,
        config: Bert,
        shape: ClassShape,
        vocabulary: int,
        input_layer: nnx.Module,
        length: int,
    ):
        super().__init__(key, config, shape, input_layer, length)
        self.inner = config.sizes.dense(fold_key(key, "inner"), config.width, config.width)
        self.norm = config.sizes.norm_layer()
        self.words = (
            None if config.tied else Embed(fold_key(key, "words"), vocabulary, config.width, config.scale_embeddings)
        )
        self.offset = NoDecay(jnp.zeros(vocabulary))

    def fill(
        self,
        source: Int[Array, " T"],
        keep: Bool[Array, " T"] | None,
        places: Int[Array, " P"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "P vocabulary"]:
        """Return the logits of every word at some positions: norm(gelu(x w + b)) · E + offset for word vectors E.

        Args:
            source: The sentence.
            keep: False marks padding. None means no padding.
            places: The positions to predict.
            key: Key for dropout. None means no dropout.

        Returns:
            Logits, at least float32. Those of a place outside the sentence are NaN.
        """
        x, _ = self.read(source, keep, key)
        x = x if self.token is None else x[1:]
        words = self.input_layer if self.words is None else self.words
        assert isinstance(words, Embed)  # the input layer of tokens
        scores = words.attend(self.norm(gelu(self.inner(lookup(x, places, jnp.nan)))))
        return scores + self.offset[...].astype(scores.dtype)[None, :]
