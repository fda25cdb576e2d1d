"""The interface of position encodings, and the encoding that does nothing."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.recurrent import Recurrent
from attnlab.ops.learned_score import Bias
from attnlab.ops.mask import ArrayOrNumpy


class PositionEncoding:
    """The hooks of a position encoding. By default every hook does nothing.

    The class attributes declare what a mechanism must support.
    """

    rotary = False
    """True if `rotate` changes q and k."""
    rotation_size = 0
    """Number of components that `rotate` needs at a time, if it preserves norms; 0 otherwise."""
    factors = "factors that decay with the distance"
    """What `rotate` multiplies q and k by, if it does not preserve norms."""
    has_bias = False
    """True if `bias` adds to scores."""
    has_values = False
    """True if the bias also adds vectors to the values."""

    def __str__(self) -> str:
        return repr(getattr(self, "config", self))

    def table(self, length: int, dtype) -> Array | None:
        """Compute once what `add` and `per_layer` need for positions 0 … length−1. None if they need nothing.

        Raises:
            ValueError: The encoding does not support sequences of that length.
        """
        return None

    def add(
        self, x: Float[Array, "T D"], i: Int[ArrayOrNumpy, " T"], table: Array | None = None
    ) -> Float[Array, "T D"]:
        """Return the input x with positions i added. `table` is the result of `table`, or None."""
        return x

    def per_layer(self, i: Int[ArrayOrNumpy, " T"], table: Array | None) -> Float[Array, "L T D"] | None:
        """Return what is added to the inputs of each layer's self-attention, or None."""
        return None

    def rotate(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"], i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]
    ):
        """Return the queries and keys of one head, rotated by their positions i and j."""
        return q, k

    def bias(self, heads: int) -> Bias | None:
        """Return a callable pytree `(q, i, j) -> [T S]` whose arrays have a leading axis of heads, or None.

        If the encoding is `has_values`, the pytree also has `weighted_values(weights [T S], i, j) -> [T V]`, which is
        added to the output.
        """
        return None

    def of_layer(self, n: int) -> PositionEncoding:
        """Return the encoding of layer n, counted from 0. By default all layers share one."""
        return self

    def refusal(self, mechanism: Mechanism) -> str | None:
        """Return why `mechanism` does not support this encoding, or None if it does."""
        if self.rotary and not mechanism.traits.rotary:
            if mechanism.with_rotary(self) is None:
                return "its scores are not products of q and k only"
            if not self.rotation_size:
                return f"its features support rotations, but not {self.factors}"
        if self.has_bias and not mechanism.traits.bias:
            return "it does not support a bias on the scores"
        if self.has_values and (isinstance(mechanism, Recurrent) or not isinstance(mechanism, Pairwise)):
            return "vectors that are added to the values need the weight of every pair"
        return None


@dataclass(frozen=True)
class Position(PositionEncoding, metaclass=Documented):
    """No position encoding. Without a causal mask, a permutation of the input permutes the output.

    This is also the base of all configurations of position encodings. Three class attributes classify them (Liu et
    al. 2020, table 1).
    """

    inductive = True
    """True if it extends beyond the lengths seen in training."""
    data_driven = False
    """True if it is learned."""
    parameter_efficient = True
    """True if the number of its parameters does not grow with the length."""

    @property
    def line(self) -> str:
        """A one-line description for a list: the first line of the docstring, and the properties that hold."""
        line = (self.__doc__ or "").splitlines()[0]
        if self.inductive:
            line += " Extrapolates to longer sequences."
        if self.data_driven:
            growth = "is independent of" if self.parameter_efficient else "grows with"
            line += f" Learned, with a number of parameters that {growth} the length."
        return line

    def check(self, width: int, heads: int) -> None:
        """Raise ValueError if the encoding does not support a model of this width and number of heads."""

    def max_length(self, dtype) -> int | None:
        """Return the maximum sequence length in `dtype`. None: unlimited."""
        return None

    def check_length(self, length: int, dtype) -> None:
        """Raise ValueError if `length` is above `max_length(dtype)`."""
        limit = self.max_length(dtype)
        if limit is not None and length > limit:
            raise ValueError(f"model.position={self} supports {limit} positions, but a sequence has {length}")

    def create(
        self, key: PRNGKeyArray, width: int, heads: int, layers: int = 1, causal: bool = False
    ) -> PositionEncoding:
        """Create the encoding that a network holds.

        Args:
            key: Key for the initial parameters.
            width: Size of the network's vectors.
            heads: Number of query heads.
            layers: Number of layers.
            causal: Whether queries see only the past.

        Returns:
            A `PositionEncoding`: this object, or a module if the encoding has parameters.
        """
        return self
