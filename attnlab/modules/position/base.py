"""The hooks by which a network learns where tokens stand, and the position that does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.ops.mask import Places


class PositionEncoding:
    """What a network may ask of a position; every hook does nothing here.

    `turning` says that it turns q and k, `biasing` that it adds to scores, `valued` that it adds to values as well:
    what a mechanism must be able to honour. `rotates` says how many components turn together, where turning keeps the
    length of what is turned; 0: it does not.
    """

    turning = False
    rotates = 0
    biasing = False
    valued = False

    def __str__(self) -> str:
        return repr(getattr(self, "config", self))

    def table(self, length: int, dtype) -> Array | None:
        """What is worked out once for positions 0 … length−1, to be handed to `add` and `per_layer`; None: nothing.

        Raises ValueError where the position ends before that length.
        """
        return None

    def add(self, x: Float[Array, "T D"], i: Int[Places, " T"], table: Array | None = None) -> Float[Array, "T D"]:
        """The input with its positions."""
        return x

    def per_layer(self, i: Int[Places, " T"], table: Array | None) -> Float[Array, "L T D"] | None:
        """What is added before each of the network's layers, or None."""
        return None

    def rotate(self, q: Float[Array, "T K"], k: Float[Array, "S K"], i: Int[Places, " T"], j: Int[Places, " S"]):
        """Queries and keys of one head, turned by their positions."""
        return q, k

    def bias(self, heads: int) -> Any:
        """A callable pytree `(q, i, j) -> [T S]` with a leading axis of heads, or None.

        Where the position is `valued`, it also answers `weighted_values(weights [T S], i, j) -> [T V]`: what joins the
        values.
        """
        return None

    def refusal(self, mechanism: Mechanism) -> str | None:
        """Why a mechanism cannot honour this position; None where it can."""
        if self.turning and not mechanism.turns:
            if mechanism.with_rotary(self) is None:
                return "its scores are not products of q and k alone"
            if not self.rotates:
                return "what it makes of q and k may be turned, and not fade besides"
        if self.biasing and not mechanism.biases:
            return "it adds no bias to scores"
        if self.valued and (mechanism.remembers or not mechanism.pairwise):
            return "the vectors that join the values need the weight of every pair"
        return None


@dataclass(frozen=True)
class Position(PositionEncoding):
    """No position: every hook does nothing. What permutes the input permutes the output.

    `inductive` says that it goes on beyond the lengths trained on, `data_driven` that it is learned, and
    `parameter_efficient` that its parameters do not grow with the length (Liu et al. 2020, table 1).
    """

    inductive = True
    data_driven = False
    parameter_efficient = True

    @property
    def line(self) -> str:
        """A line about this one, in a list of several: what it is, and which of the three it is."""
        named = {"inductive": self.inductive, "data-driven": self.data_driven}
        named |= {"parameter-efficient": self.parameter_efficient}
        told = ", ".join(name for name, holds in named.items() if holds)
        return f"{(type(self).__doc__ or '').splitlines()[0]} {told.capitalize()}."

    def check(self, width: int, heads: int) -> None:
        """Raise ValueError for a model of a width and so many heads that it cannot serve."""

    def max_length(self, dtype) -> int | None:
        """How many positions it can tell in a dtype; None: any number."""
        return None

    def check_length(self, length: int, dtype) -> None:
        """Raise ValueError where a sequence of that length goes beyond its reach."""
        reach = self.max_length(dtype)
        if reach is not None and length > reach:
            raise ValueError(f"model.position={self} tells {reach} positions, and a sequence has {length}")

    def create(self, key: PRNGKeyArray, width: int, heads: int, layers: int = 1, causal: bool = False) -> Any:
        """What a network of that width, so many heads and layers holds: the hooks, with parameters where it has them.

        `causal` says that its queries see the past only.
        """
        return self
