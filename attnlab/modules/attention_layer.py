"""The interface of attention layers' configurations: what stands around the mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from attnlab.documented import Documented
from attnlab.mechanisms.base import Mechanism


@dataclass(frozen=True)
class AttentionLayer(ABC, metaclass=Documented):
    """What stands around the mechanism of an attention layer; the base of `MultiHead` and `Latent`."""

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
    def for_memory(self) -> AttentionLayer:
        """This layer for another sequence as memory: without what applies to self-attention only."""

    @property
    def states(self) -> int | None:
        """Number of heads with a state of their own. None: as many as key heads."""
        return None

    @property
    def reads_first_values(self) -> bool:
        """Whether values depend on those of the first layer."""
        return False


def check_heads(width: int, heads: int, key_heads: int) -> None:
    """Raise ValueError if a number is below 1, `heads` does not divide `width`, or `key_heads` not `heads`."""
    for name, value in {"width": width, "heads": heads, "key_heads": key_heads}.items():
        if value < 1:
            raise ValueError(f"model.{name}={value} must be at least 1")
    if width % heads:
        raise ValueError(f"model.heads={heads} must divide model.width={width}")
    if heads % key_heads:
        raise ValueError(f"model.key_heads={key_heads} must divide model.heads={heads}")
