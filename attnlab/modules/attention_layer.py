"""The interface of attention layers, which contain the mechanism: projections, gate, norms, head widths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from attnlab.documented import Documented
from attnlab.mechanisms.base import Mechanism


@dataclass(frozen=True)
class AttentionLayer(ABC, metaclass=Documented):
    """The attention layer that contains the mechanism: projections, gate, norms, head widths.

    This is the base of `MultiHead` and `Latent`.
    """

    @abstractmethod
    def check(self, width: int, heads: int, key_heads: int) -> None:
        """Check the numbers of heads and the widths.

        Raises:
            ValueError: A number is below 1, or one does not fit another. The message names the field.
        """

    @abstractmethod
    def widths(self, width: int, heads: int) -> tuple[int, int]:
        """Return the widths K of a key and V of a value, for a model of a width and a number of heads."""

    def rotated(self, width: int, heads: int) -> int:
        """Return how many components of a query or key rotary positions rotate."""
        return self.widths(width, heads)[0]

    @abstractmethod
    def refusal(self, mechanism: Mechanism, role: str) -> str | None:
        """Return why a mechanism does not support this layer in a role, or None if it does.

        Args:
            mechanism: The attention mechanism.
            role: "decoder" if the attention is causal, otherwise another name.
        """

    @property
    @abstractmethod
    def for_context(self) -> AttentionLayer:
        """This layer for cross-attention to another sequence: without what applies to self-attention only."""

    def value_count(self, heads: int, key_heads: int) -> int:
        """Return the number of values per token, for a model of a number of query heads and of key heads."""
        return key_heads

    @property
    def mechanism_heads(self) -> int | None:
        """Number of heads for which the mechanism is computed. None: as many as the model's query heads."""
        return None

    @property
    def reads_first_values(self) -> bool:
        """Whether values depend on those of the first layer."""
        return False


def check_whole(**sizes: int | None) -> None:
    """Raise ValueError if a size, by the name of its field, is not a whole number of 1 or more. None passes."""
    for name, size in sizes.items():
        if size is not None and (type(size) is not int or not 1 <= size <= 2**20):
            raise ValueError(f"{name}={size} must be a whole number of at least 1, and at most {2**20}")


def check_heads(width: int, heads: int, key_heads: int, divides: bool = True) -> None:
    """Check the numbers of heads of a model.

    Args:
        width: Width of the model.
        heads: Number of query heads.
        key_heads: Number of key heads.
        divides: Whether `heads` must divide `width`, because heads have no width of their own.

    Raises:
        ValueError: A number is below 1, or one does not divide another that it must divide.
    """
    for name, value in {"width": width, "heads": heads, "key_heads": key_heads}.items():
        if value < 1:
            raise ValueError(f"model.{name}={value} must be at least 1")
    if divides and width % heads:
        raise ValueError(f"model.heads={heads} must divide model.width={width}")
    if heads % key_heads:
        raise ValueError(f"model.key_heads={key_heads} must divide model.heads={heads}")
