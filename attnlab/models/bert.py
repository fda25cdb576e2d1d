"""BERT: an encoder to both sides that fills words in, and sorts (Devlin et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.classifier import Classifier, ClassifierNetwork
from attnlab.models.config import check_shape
from attnlab.modules.dense import fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position import Learned, Position
from attnlab.ops.layer import gelu


@dataclass(frozen=True)
class Bert(Classifier):
    """A classifier of sentences that can also tell what word stands at a place.

    Behind a layer and a norm words are scored against their own vectors, or, unless `tied`, against others (Devlin et
    al. 2019, 3.1). What differs: the layers' norms come first unless `norm_first` says otherwise, sentences stand
    alone, so that nothing says which of two a word is in, and embeddings are scaled, not normed. The other fields are
    those of `Classifier`.
    """

    pool: Literal["mean", "token"] = "token"
    position: Position = Learned()
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "gelu"
    dropout: float = 0.1
    tied: bool = True
    norm_eps: float = 1e-12
    ties = True

    def create(self, key: PRNGKeyArray, shape: Any) -> BertNetwork:
        """A new network for sentences (`attnlab.tasks.Classes` of `Tokens`). Raises ValueError for others."""
        check_shape(self, shape, "source", "classes")
        check_shape(self, shape.source, "vocabulary", "length")
        return BertNetwork(key, self, shape, *self.front(fold_key(key, "front"), shape.source))


class BertNetwork(ClassifierNetwork):
    """The network of a `Bert`; one example."""

    def __init__(self, key: PRNGKeyArray, config: Bert, shape: Any, front: nnx.Module, length: int):
        super().__init__(key, config, shape, front, length)
        self.inner = config.sizes.dense(fold_key(key, "inner"), config.width, config.width)
        self.norm = config.sizes.norm_layer()
        vocabulary = shape.source.vocabulary
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
        """Scores of every word for each of the places, in float32 at least; `keep` False is padding.

        A vector of each word times norm(gelu(x w + b)), plus an offset of each.
        """
        x, _ = self.read(source, keep, key)
        x = x if self.token is None else x[1:]
        words = self.front if self.words is None else self.words
        scores = words.attend(self.norm(gelu(self.inner(x[places]))))
        return scores + self.offset[...].astype(scores.dtype)[None, :]
