"""What models need to know of a task's data. The dataclasses of `attnlab.tasks` have these attributes."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class TokenShape(Protocol):
    """One sequence of tokens."""

    @property
    def vocabulary(self) -> int:
        """Number of ids."""
        ...

    @property
    def length(self) -> int:
        """Largest number of tokens."""
        ...


@runtime_checkable
class VectorShape(Protocol):
    """One sequence of vectors."""

    @property
    def features(self) -> int:
        """Size of a vector."""
        ...

    @property
    def length(self) -> int:
        """Largest number of vectors."""
        ...


@runtime_checkable
class ImageShape(Protocol):
    """One image."""

    @property
    def height(self) -> int:
        """Number of rows of pixels."""
        ...

    @property
    def width(self) -> int:
        """Number of columns of pixels."""
        ...

    @property
    def channels(self) -> int:
        """Number of channels of a pixel."""
        ...


Source = TokenShape | VectorShape | ImageShape


@runtime_checkable
class ClassShape(Protocol):
    """An input, and its class or the class of each of its positions."""

    @property
    def source(self) -> Source:
        """Shape of the input."""
        ...

    @property
    def classes(self) -> int:
        """Number of classes."""
        ...

    @property
    def each(self) -> bool:
        """Whether each position has its own class."""
        ...


@runtime_checkable
class TokenPairShape(Protocol):
    """A source and a target sequence of tokens."""

    @property
    def source_vocabulary(self) -> int:
        """Number of ids of the source."""
        ...

    @property
    def target_vocabulary(self) -> int:
        """Number of ids of the target."""
        ...

    @property
    def source_length(self) -> int:
        """Largest number of tokens of a source."""
        ...

    @property
    def target_length(self) -> int:
        """Largest number of tokens of a target."""
        ...

    @property
    def joint(self) -> bool:
        """Whether an id means the same symbol in source and target."""
        ...


@runtime_checkable
class DocumentPairShape(Protocol):
    """Two documents, and one class for both."""

    @property
    def document(self) -> TokenShape:
        """Shape of each document."""
        ...

    @property
    def classes(self) -> int:
        """Number of classes."""
        ...


@runtime_checkable
class AssociationShape(Protocol):
    """Key-value pairs, as ids."""

    @property
    def keys(self) -> int:
        """Number of different keys."""
        ...

    @property
    def values(self) -> int:
        """Number of different values."""
        ...


@runtime_checkable
class FilteredImageShape(Protocol):
    """An image, and an image of the same sides that is computed from it."""

    @property
    def source(self) -> ImageShape:
        """Shape of the first image."""
        ...

    @property
    def channels(self) -> int:
        """Number of channels of the second image."""
        ...


@runtime_checkable
class DetectionShape(Protocol):
    """An image with boxes."""

    @property
    def image(self) -> ImageShape:
        """Shape of the image."""
        ...

    @property
    def classes(self) -> int:
        """Number of classes of boxes."""
        ...

    @property
    def most(self) -> int:
        """Largest number of boxes in an image."""
        ...


@runtime_checkable
class GeneratedImageShape(Protocol):
    """An image that is generated from a latent vector."""

    @property
    def image(self) -> ImageShape:
        """Shape of the image."""
        ...

    @property
    def latent(self) -> int:
        """Size of the latent vector."""
        ...


@runtime_checkable
class GraphShape(Protocol):
    """A graph whose nodes are classified."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        ...

    @property
    def features(self) -> int:
        """Number of features of a node."""
        ...

    @property
    def classes(self) -> int:
        """Number of classes."""
        ...


Shape = (
    TokenShape
    | TokenPairShape
    | ClassShape
    | DocumentPairShape
    | AssociationShape
    | FilteredImageShape
    | DetectionShape
    | GeneratedImageShape
    | GraphShape
)
"""The data of a task, as a model is told about them. A model reads some of these shapes and refuses all others."""
Needed = TypeVar("Needed")


def check_shape(config: object, shape: Shape | Source, needed: type[Needed]) -> Needed:
    """Return the shape of a task's data, if it is the kind of shape that a model needs.

    Args:
        config: The configuration of the model.
        shape: The shape of the data.
        needed: The protocol that the shape must satisfy.

    Raises:
        ValueError: The shape lacks an attribute of the protocol.
    """
    if isinstance(shape, needed):
        return shape
    attributes = [name for name in vars(needed) if not name.startswith("_")]
    raise ValueError(
        f"model={type(config).__name__} needs data with {', '.join(attributes)}, but this task's data have "
        f"{', '.join(vars(shape))}; choose another model"
    )


def check_image(config: object, shape: Shape) -> tuple[ImageShape, int]:
    """Return the shape of images, each with one class, and the number of classes. Raises ValueError for other data."""
    found = check_shape(config, shape, ClassShape)
    if not isinstance(found.source, ImageShape) or found.each:
        raise ValueError(f"model={type(config).__name__} classifies images, and this task's data are others")
    return found.source, found.classes
