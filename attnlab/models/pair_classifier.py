"""A classifier of pairs of documents with one shared encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.classifier import Classifier, ClassifierNetwork
from attnlab.models.config import check_shape
from attnlab.modules.dense import Dense, fold_key


@dataclass(frozen=True)
class PairClassifier(Classifier):
    """Configuration of a classifier of document pairs, in which both documents pass through the same encoder.

    For the vectors a and b of the two documents, [a ; b ; a∘b ; a−b] passes through a layer of `width` units, as in the
    Long Range Arena (Tay et al. 2021, section 2.2.3). The fields are those of `Classifier`.
    """

    def create(self, key: PRNGKeyArray, shape: Any) -> PairClassifierNetwork:
        """Create a network for pairs of `shape` (`attnlab.tasks.text.documents.PairOfDocuments`)."""
        check_shape(self, shape, "document", "classes")
        return PairClassifierNetwork(key, self, shape)


@dataclass(frozen=True)
class Tower:
    """The data shape for which the encoder of one document is built; `classes` is the size of its vector."""

    source: Any
    """The shape of the document."""
    classes: int
    """The size of the document's vector."""
    each: bool = False
    """Whether every position has its own vector. If False, each document has one vector."""


class PairClassifierNetwork(nnx.Module):
    """The network of a `PairClassifier`, for one pair."""

    def __init__(self, key: PRNGKeyArray, config: PairClassifier, shape: Any):
        tower, front = Tower(shape.document, config.width), config.front(fold_key(key, "front"), shape.document)
        self.tower = ClassifierNetwork(fold_key(key, "tower"), config, tower, *front)
        self.hidden = Dense(fold_key(key, "hidden"), 4 * config.width, config.width)
        self.head = Dense(fold_key(key, "head"), config.width, shape.classes)

    def __call__(
        self, source: Int[Array, "2 T"], keep: Bool[Array, "2 T"] | None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        """Return the logits of the classes, at least float32. `keep` is False at padding, or None."""
        keys = None if key is None else jax.random.split(key)
        a, b = jax.vmap(self.tower)(source, keep, keys)
        joined = jnp.concatenate([a, b, a * b, a - b])
        return self.head(jax.nn.relu(self.hidden(joined[None])))[0]
