"""The contract of attention mechanisms: what a caller can ask of any of them.

A mechanism is written as one of three kinds: `Pairwise`, `Recurrent` or `Whole`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

from jaxtyping import Array, Float, PyTree

from attnlab.documented import Documented
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.position_state import PositionState
from attnlab.ops.feature.rotated import RotaryEncoding
from attnlab.ops.mask import Full, Mask
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class State(metaclass=Documented):
    """Decoding state of a mechanism."""

    position_state: PositionState
    """Position and segment of the next token."""
    memory: PyTree
    """The mechanism's own memory, for example a `Cache` of keys and values or a matrix."""


@dataclass(frozen=True)
class Traits(metaclass=Documented):
    """What a mechanism supports and what its outputs depend on. Declared by each mechanism."""

    decodes: bool = True
    """Whether it can attend causally and decode token by token."""
    non_causal: bool = True
    """Whether it attends under masks other than `Causal()`. Some of these need the same mask for every query."""
    edges: bool = False
    """Whether it computes weights only for the edges of an `EdgeList`. Others compute all pairs and mask them."""
    rotary: bool = False
    """Whether rotary positions can be applied to q and k: products of rotated vectors still depend on distance."""
    bias: bool = False
    """Whether a `bias` is added to the scores. If False, a bias raises NotImplementedError."""
    row_independent: bool = True
    """Whether the output of a query is independent of all other queries."""
    self_only: bool = False
    """Whether it only attends from a sequence to itself, with as many queries as keys."""
    position_dependent: bool = False
    """Whether weights depend on the positions or the order of tokens, whatever q and k hold."""
    ill_conditioned: str = ""
    """Why rounding of the inputs may change the outputs more for longer sequences. Empty if it does not."""
    undecayed: tuple[str, ...] = ()
    """Names of learned matrices that weight decay spares, because they are constants of gates."""


@dataclass(frozen=True)
class Mechanism(ABC, metaclass=Documented):
    """Mixes S values for T queries, for one example and one head.

    y [T V] is computed from q [T K], k [S K] and v [S V]. Every mechanism is linear in v.

    Mechanisms are frozen dataclasses: hashable and without arrays. Write one as a subclass of `Pairwise`, `Recurrent`
    or `Whole`. Concrete mechanisms are final: a mechanism that needs another one holds it in a field.
    """

    traits: ClassVar[Traits] = Traits()
    """What this mechanism supports."""

    def __init_subclass__(cls):
        super().__init_subclass__()
        for base in cls.__bases__:
            if "__final__" in vars(base):
                raise TypeError(
                    f"{base.__name__} is final: subclass Pairwise, Recurrent or Whole, or hold it in a field"
                )

    def __str__(self):
        """Returns the constructor call, with functions shown by name."""
        held = [(field.name, getattr(self, field.name)) for field in fields(self)]
        shown = ", ".join(f"{name}={getattr(x, '__name__', x)}" for name, x in held)
        return f"{type(self).__name__}({shown})"

    @property
    def tokens(self) -> dict[str, tuple]:
        """Extra inputs per key token, as name to shape.

        The array passed to a call has a leading axis [S] before this shape. "K" and "V" stand for the widths, and "K/2"
        for half of K, rounded down.
        """
        return {}

    @property
    def queries(self) -> dict[str, tuple]:
        """Extra inputs per query token, as name to shape, like `tokens` with a leading axis [T]."""
        return {}

    @property
    def learned(self) -> dict[str, tuple]:
        """Learned arrays of one head, as name to shape. "K" and "V" stand for the widths.

        Weight decay applies to matrices, which have two or more axes, unless the trait `undecayed` names them.
        """
        return {}

    def initial(self, key: Array, K: int, V: int) -> dict[str, Array]:
        """Returns initial values of the learned arrays of one head, by name.

        Args:
            key: random key.
            K: width of keys.
            V: width of values.
        """
        return {}

    def heads(self, H: int) -> dict[str, Float[Array, " H"]]:
        """Returns constants that differ by head and are not learned, by name, one number per head.

        A call takes the number of its own head. There is no default for it, because under `jax.vmap` every head would
        share that default.
        """
        return {}

    @abstractmethod
    def attend(self, q, k, v, mask: Mask = Full(), *, i=None, j=None, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends from any queries to any keys, as in encoders, cross-attention and graphs.

        A query that sees no key returns zero. Tokens that no query sees affect neither the result nor any gradient.

        Args:
            q: queries [T K]. Integers become the default float.
            k: keys [S K].
            v: values [S V].
            mask: which query may see which key. Default: all. Under an `EdgeList`, a mechanism with the trait `edges`
                computes only the edges, if positions are known while tracing.
            i: positions of the queries [T]. Default: S−T … S−1, so that the last query is aligned with the last key.
            j: positions of the keys [S]. Default: 0 … S−1.
            bias: function `bias(q, i, j) -> [T S]` of queries and positions that is added to scores. Traced values that
                it holds must be leaves of a pytree, for example of a `jax.tree_util.Partial`.
            **extra: extra inputs, by the names in `tokens`, `queries`, `learned` and `heads`.

        Returns:
            Output [T V].

        Raises:
            ValueError: if shapes do not fit, or if the mask looks up rows by position, T ≠ S and `i` is missing.
            NotImplementedError: if this mechanism does not support the mask or the bias.
            TypeError: if an input is complex, `mask` is not a mask, `bias` is not a function, or an extra input is
                unknown or missing.
        """

    @abstractmethod
    def start(self, length: int, K: int, V: int, dtype=None) -> State:
        """Returns the state before the first token.

        Args:
            length: number of tokens that a cache can hold. It does not change any result.
            K: width of keys.
            V: width of values.
            dtype: dtype of a cache. Sums have at least float32. Default: the default float.

        Raises:
            ValueError: if the mechanism supports fewer than `length` positions, see `check_length`.
            TypeError: if `dtype` is not a floating-point dtype.
            NotImplementedError: if this mechanism cannot decode.
        """

    @abstractmethod
    def extend(
        self, state: State, q, k, v, *, i=None, keep=None, segment=None, bias=None, **extra
    ) -> tuple[Float[Array, "T V"], State]:
        """Processes T new tokens after those in `state`.

        Args:
            state: state from `start` or an earlier `extend`.
            q: queries [T K].
            k: keys [T K].
            v: values [T V].
            i: positions [T]. Default: they continue from the state.
            keep: False for padding [T]. Padding is not written, causes no decay, and returns a row of zeros. Default:
                all True.
            segment: segment ids [T]. A token does not see tokens before the last change of segment. Default: the
                segment of the state.
            bias: function `bias(q, i, j)` that is added to scores, or None.
            **extra: extra inputs, by the names in `tokens`, `queries`, `learned` and `heads`.

        Returns:
            Output [T V] and the new state.

        Raises:
            ValueError: if a cache is known to be full. Under tracing, the output of a token that does not fit is NaN,
                and the cache is not changed by it.
            NotImplementedError: if this mechanism does not support a bias, or cannot decode.
            TypeError: if an input is complex, `bias` is not a function, or an extra input is unknown or missing.
        """

    @abstractmethod
    def causal(self, q, k, v, *, i=None, keep=None, segment=None, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends causally over a whole sequence, in the mechanism's fastest form.

        The result equals that of `extend` from an empty state, without the new state. Arguments and errors are those of
        `extend`.
        """

    def cost(self, T: int, S: int, K: int, V: int, block: int | None = None) -> Cost:
        """Returns the floating-point operations, bytes moved and bytes of state, in float32.

        Args:
            T: number of queries.
            S: number of keys.
            K: width of keys.
            V: width of values.
            block: number of tokens processed at a time in a causal pass, or None for T queries against S keys at once.

        Raises:
            NotImplementedError: if this mechanism does not declare a cost.
        """
        raise NotImplementedError(f"{self} does not declare its cost")

    def with_length(self, length: int) -> Mechanism:
        """Returns this mechanism for sequences of up to `length` tokens.

        Returns itself unless it has a maximum length, as one does with a learned array per position.
        """
        return self

    def check_length(self, length: int) -> None:
        """Checks that this mechanism supports `length` positions.

        Softmax and local-p with a score that has a maximum length check each position in a call instead, because a
        cache may be longer than the positions that are used.

        Raises:
            ValueError: if the mechanism has a maximum length and `length` exceeds it.
        """
        return None

    def with_rotary(self, position: RotaryEncoding) -> Mechanism | None:
        """Returns a mechanism that applies rotary positions to its features, or None if it cannot.

        Used if the trait `rotary` is False, when rotating q and k would change what their products mean. The default
        returns None. None means that the mechanism has no features, or that its features encode positions already.

        Args:
            position: rotary encoding. `position.rotate(q, k, i, j)` rotates `position.rotation_size` numbers together.
        """
        return None

    def sees_all(self, length: int) -> bool:
        """Returns whether the first of `length` tokens sees all tokens under a full mask, whatever they hold."""
        return True
