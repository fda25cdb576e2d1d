"""Mechanisms that look at a whole sequence at once and cannot decode."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NoReturn

from jaxtyping import Array, Float

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.checked import CheckedMechanism
from attnlab.ops.mask import Mask
from attnlab.ops.token_block import TokenBlock


@dataclass(frozen=True)
class Whole(CheckedMechanism):
    """A mechanism that attends to a whole sequence at once. A subclass implements `attend_all`."""

    traits = Traits(decodes=False)

    @abstractmethod
    def attend_all(self, q, k, v, mask: Mask, *, i, j, bias=None, **extra) -> Float[Array, "T V"]:
        """See `CheckedMechanism.attend_all`."""

    def attend_causal(self, q, k, v, block: TokenBlock, *, bias=None, **extra) -> NoReturn:
        """Raises NotImplementedError, because the mechanism needs the whole sequence at once."""
        self._refuse()

    def init_memory(self, length: int, K: int, V: int, dtype) -> NoReturn:
        """Raises NotImplementedError, because the mechanism needs the whole sequence at once."""
        self._refuse()

    def update(self, memory, q, k, v, block: TokenBlock, *, bias=None, **extra) -> NoReturn:
        """Raises NotImplementedError, because the mechanism needs the whole sequence at once."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(f"{self} has no causal form and cannot decode")
