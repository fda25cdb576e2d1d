"""What tasks need of a model: the methods that they call, for one example at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree


class Classifier(Protocol):
    """A model that classifies an example or each of its positions."""

    def __call__(
        self, source: Array, keep: Bool[Array, " T"] | None, *, key: PRNGKeyArray | None
    ) -> Float[Array, "*T classes"]:
        """Returns the scores of the classes."""
        ...


@runtime_checkable
class MaskedWordModel(Protocol):
    """A model that predicts masked words."""

    def fill(
        self,
        source: Int[Array, " T"],
        keep: Bool[Array, " T"] | None,
        places: Int[Array, " P"],
        key: PRNGKeyArray | None,
        /,
    ) -> Float[Array, "P V"]:
        """Returns the scores of the words at some positions."""
        ...


class SequenceDecoder(Protocol):
    """A model that writes a target symbol by symbol, after reading a source."""

    def start(self, source: Int[Array, " S"], keep: Bool[Array, " S"], length: int, /) -> PyTree:
        """Returns the state before the first of `length` symbols."""
        ...

    def step(self, state: PyTree, token: Int[Array, ""], /) -> tuple[Float[Array, " V"], PyTree]:
        """Returns the scores of the symbol after `token`, and the next state."""
        ...


class ContinuationModel(Protocol):
    """A model that continues a text symbol by symbol."""

    def start(self, length: int, /) -> PyTree:
        """Returns the state before the first of `length` symbols."""
        ...

    def step(self, state: PyTree, token: Int[Array, ""], /) -> tuple[Float[Array, " V"], PyTree]:
        """Returns the scores of the symbol after `token`, and the next state."""
        ...


class TokenScores(Protocol):
    """A model that predicts the next token at every position."""

    def __call__(
        self, tokens: Int[Array, " T"], keep: Bool[Array, " T"] | None, *, key: PRNGKeyArray | None
    ) -> Float[Array, "T V"]:
        """Returns the scores of the tokens."""
        ...


class Retriever(Protocol):
    """A model that returns the values of queried keys."""

    def __call__(
        self, keys: Int[Array, " T"], values: Int[Array, " T"], queries: Int[Array, " Q"], *, key: PRNGKeyArray | None
    ) -> Float[Array, "Q V"]:
        """Returns a vector over the values for each query."""
        ...


class NodeClassifier(Protocol):
    """A model that classifies the nodes of a graph."""

    def __call__(
        self, edges: np.ndarray, entries: np.ndarray, values: np.ndarray, *, key: PRNGKeyArray | None
    ) -> Float[Array, "N classes"]:
        """Returns the scores of the classes of every node."""
        ...

    def penalty(self) -> Float[Array, ""]:
        """Returns what is added to the loss."""
        ...


class BoxModel(Protocol):
    """A model that finds objects in an image."""

    def __call__(
        self, image: Float[Array, "H W C"], *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, "L Q classes+1"], Float[Array, "L Q 4"]]:
        """Returns scores and boxes of every layer. The last class means "no object"."""
        ...


class ImageModel(Protocol):
    """A model from images to images."""

    def __call__(self, image: Float[Array, "H W C"], keep: None, /) -> Float[Array, "H W D"]:
        """Returns the image."""
        ...


class ImagePlayers(Protocol):
    """A pair of models that generate and judge images."""

    def networks(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """Returns the generator, latent [Z] -> image [H W C], and the discriminator, image -> score."""
        ...
