"""What the configuration of a model has: the interfaces that other rooms rely on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import ClassVar, Protocol, runtime_checkable

from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.mechanisms import Mechanism
from attnlab.models.shapes import Shape
from attnlab.modules.position import Position
from attnlab.pattern import Pattern


@runtime_checkable
class ModelConfig(Protocol):
    """The configuration of a model: a frozen dataclass from which a network is created."""

    __dataclass_fields__: ClassVar[dict[str, Field]]

    def create(self, key: PRNGKeyArray, shape: Shape) -> nnx.Module:
        """Create a network with initial parameters for data of a shape.

        Raises:
            ValueError: The model does not support the shape.
        """
        ...


@runtime_checkable
class AttentionConfig(Protocol):
    """The configuration of a model with attention and a position encoding."""

    mechanism_fields: ClassVar[tuple[str, ...]]
    """The roles whose mechanism is set by a field of that name. If it is None, and for other roles, by `mechanism`."""

    @property
    def width(self) -> int:
        """Size of the vectors."""
        ...

    @property
    def heads(self) -> int:
        """Number of query heads."""
        ...

    @property
    def mechanism(self) -> Mechanism | Pattern:
        """The common mechanism, or the pattern of mechanisms."""
        ...

    @property
    def position(self) -> Position | Pattern:
        """The position encoding, or the pattern of position encodings."""
        ...

    @property
    def attentions(self) -> Mapping[str, Mechanism | Pattern]:
        """The mechanism of each attention, or the pattern of its layers, by its role."""
        ...
