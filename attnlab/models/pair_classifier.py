"""A classifier of pairs of documents with one shared encoder."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.classifier import Classifier, ClassifierNetwork
from attnlab.models.shapes import DocumentPairShape, Shape, TokenShape, check_shape
from attnlab.modules.dense import Dense, fold_key


@dataclass(frozen=True)
class PairClassifier(Classifier):
    """Configuration of a classifier of document pairs, in which both documents pass through the same encoder.

    For the vectors a and b of the two documents, [a ; b ; a∘b ; a−b] passes through a layer of `width` units (Tay et
    al. 2021, section 2.2.3). The code of the Long Range Arena has two such layers, the second half as wide as the
    first. The fields are those of `Classifier`.
    """

    def create(self, key: PRNGKeyArray, shape: Shape) -> PairClassifierNetwork:
        """Create a network for pairs of `shape` (`attnlab.tasks.text.documents.PairOfDocuments`)."""
        shape = check_shape(self, shape, DocumentPairShape)
        return PairClassifierNetwork(key, self, shape)


@dataclass(frozen=True)
class Tower:
    """The data shape for which the shared encoder is built. It takes the place of a task's shape in a classifier."""

    source: TokenShape
    """Shape of one document."""
    classes: int
    """Size of a document's vector, which the encoder returns instead of logits."""
    each: bool = False
    """Whether there is one output per position. Always False."""


class PairClassifierNetwork(nnx.Module):
    """The network of a `PairClassifier`, for one pair."""

    def __init__(self, key: PRNGKeyArray, config: PairClassifier, shape: DocumentPairShape):
        tower, input_layer = (
            Tower(shape.document, config.width),
            config.input_layer(fold_key(key, "front"), shape.document),
        )
        self.tower = ClassifierNetwork(fold_key(key, "tower"), config, tower, *input_layer)
        self.hidden = Dense(fold_key(key, "hidden"), 4 * config.width, config.width)
        self.head = Dense(fold_key(key, "head"), config.width, shape.classes)

    def __call__(
        self, source: Int[Array, "2 T"], keep: Bool[Array, "2 T"] | None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        """Return the logits of the classes, at least float32.

        Args:
            source: The two documents.
            keep: False marks padding. None means no padding.
            key: Key for dropout. None means no dropout.
        """
        keys = None if key is None else jax.random.split(key)
        a, b = jax.vmap(self.tower)(source, keep, keys)
        joined = jnp.concatenate([a, b, a * b, a - b])
        return self.head(jax.nn.relu(self.hidden(joined[None])))[0]
