"""An encoder that sorts: sequences of symbols or of vectors into classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms import Mechanism
from attnlab.models.config import StackConfig, check_names, check_no_embeddings, check_shape
from attnlab.models.encoder import Encoder
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.parameter import NoDecay
from attnlab.ops.precision import accumulation_dtype

POOLS = ("mean", "token")


@dataclass(frozen=True)
class Classifier(StackConfig):
    """`layers` encoder blocks, and scores of classes: of the whole sequence, or of each position where a task asks so.

    `pool` says what a whole sequence is scored by: the mean of its vectors, or a learned token in front of them, which
    has no place in it (Devlin et al. 2019; Dosovitskiy et al. 2021). `mechanism` is any that sees both sides, and for a
    token one by which the first row sees all others at once. The other fields are those of `StackConfig`.

    Raises ValueError naming the field for what cannot work, when it is made or, where that needs the length, `create`d.
    """

    pool: Literal["mean", "token"] = "mean"
    ties = False  # whether there is an embedding to score against

    def __post_init__(self):
        super().__post_init__()
        check_names(self, pool=POOLS)
        if self.tied and not self.ties:
            raise ValueError(f"model.tied=True: classes have no embedding for {type(self).__name__} to score against")

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The encoder's."""
        return {"encoder": self.mechanism}

    def watched(self, watch) -> Classifier:
        """The same with the mechanism put through `watch`."""
        return replace(self, mechanism=watch(self.mechanism))

    def create(self, key: PRNGKeyArray, shape: Any) -> ClassifierNetwork:
        """A new network for examples of that shape (`attnlab.tasks.Classes` of `Tokens` or `Frames`)."""
        check_shape(self, shape, "source", "classes")
        return ClassifierNetwork(key, self, shape, *self.front(fold_key(key, "front"), shape.source))

    def front(self, key: PRNGKeyArray, source: Any) -> tuple[nnx.Module, int]:
        """What makes vectors [T D] of the source, and the longest T. Raises ValueError for a source it cannot read."""
        if hasattr(source, "vocabulary"):
            return Embed(key, source.vocabulary, self.width, self.scale_embeddings), source.length
        check_no_embeddings(self)
        if hasattr(source, "features"):
            return self.sizes.dense(key, source.features, self.width), source.length
        hint = "images: model=vit" if hasattr(source, "height") else f"{type(source).__name__.lower()}"
        raise ValueError(f"model={type(self).__name__} reads sequences, and this task's data are {hint}")

    def scores(self, key: PRNGKeyArray, classes: int) -> nnx.Module:
        """What makes scores of classes of vectors [N D]."""
        return Dense(key, self.width, classes)


class ClassifierNetwork(nnx.Module):
    """The network of a `Classifier`; one example."""

    def __init__(self, key: PRNGKeyArray, config: Classifier, shape: Any, front: nnx.Module, length: int):
        self.config, self.each = config, shape.each
        self.front: Any = front
        begins = config.pool == "token" and not shape.each
        if begins and not config.mechanism.sees_all(length + 1):
            raise ValueError(
                f"model.pool=token: in front of {length} places the token does not see them all by model.mechanism="
                f"{config.mechanism}; use model.pool=mean, or a mechanism such as softmax or longformer"
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
        """Scores of the classes, in float32 at least; `keep` False is padding."""
        return self.look(source, keep, key)[0]

    def look(self, source, keep=None, key=None) -> tuple[Float[Array, "..."], dict]:
        """The scores, and what watched attentions saw: {"encoder": [L H T T] or None}."""
        x, seen = self.read(source, keep, key)
        if not self.each:
            x = (x[0] if self.token is not None else _mean(x, keep))[None]
        scores = self.head(x)
        return (scores if self.each else scores[0]).astype(accumulation_dtype(scores.dtype)), seen

    def read(self, source, keep=None, key=None) -> tuple[Float[Array, "N D"], dict]:
        """The source as the encoder understood it, and looks; in front of it the token, where there is one."""
        dtype = jnp.dtype(self.config.dtype)
        x = self.front(source, dtype) if isinstance(self.front, Embed) else self.front(source.astype(dtype))
        return self.encoder(x, keep, key, None if self.token is None else self.token[...])


def _mean(x: Float[Array, "T D"], keep: Bool[Array, " T"] | None) -> Float[Array, " D"]:
    """Over what is kept; zero where nothing is. Summed in float32 at least."""
    if keep is None:
        return x.mean(axis=0)
    held = jnp.where(keep[:, None], x, 0).astype(accumulation_dtype(x.dtype))
    count = jnp.maximum(keep.sum(), 1).astype(held.dtype)
    return (held.sum(axis=0) / count).astype(x.dtype)
