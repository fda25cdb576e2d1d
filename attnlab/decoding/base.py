"""The contract of every decoding method: its problem, its result and its base class."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from attnlab.documented import Documented


class SearchResult(NamedTuple):
    """N sequences for one example, the best first.

    A sequence includes its `end` symbol and is followed by padding.
    """

    tokens: Int[Array, "N length"]
    """Symbols [N length], int32."""
    scores: Float[Array, " N"]
    """Log-probability of each sequence's tokens among all symbols of the model [N], float32, in nats.

    A beam's score is divided by its length penalty. It is NaN if the model returned NaN.
    """


Step = Callable[[PyTree, Int[Array, ""]], tuple[Float[Array, " V"], PyTree]]
"""Function `step(state, token) -> (logits [V], state)`."""


@runtime_checkable
class Bounded(Protocol):
    """A state of a model that has room for a limited number of tokens."""

    @property
    def length(self) -> int:
        """The number of tokens."""
        ...


@dataclass(frozen=True)
class DecodeProblem(metaclass=Documented):
    """One decoding problem: a model, its initial state, the special symbols and the maximum length.

    Raises:
        ValueError: if `length` is below 1 or exceeds the capacity of a `Bounded` state, or if `end` equals
            `begin` or `pad`.
    """

    step: Step
    """Function `step(state, token) -> (logits [V], state)` for the symbol that follows `token`."""
    state: PyTree
    """State of the model before the first symbol."""
    begin: int
    """Symbol that comes before the first token. It is never chosen."""
    end: int
    """Symbol that ends a sequence. A negative number ends none."""
    length: int
    """Maximum number of tokens, including `end`."""
    pad: int = 0
    """Symbol that follows `end`. It is never chosen."""

    def __post_init__(self):
        check_at_least_one(length=self.length)
        if isinstance(self.state, Bounded) and self.length > self.state.length:
            raise ValueError(
                f"length={self.length} must be at most {self.state.length}, the capacity of the state; start a longer "
                "state"
            )
        marks = {name: mark for name, mark in (("begin", self.begin), ("pad", self.pad)) if isinstance(mark, Integral)}
        if isinstance(self.end, Integral) and self.end in marks.values():
            raise ValueError(
                f"end={self.end!r} must differ from begin={self.begin!r} and pad={self.pad!r}, which are never chosen"
            )

    def possible(self, logits: Float[Array, " V"]) -> tuple[Float[Array, " V"], Float[Array, " V"]]:
        """Excludes `begin` and `pad` from the logits of the next symbol.

        Their probability is not redistributed to other symbols. If one logit is NaN, all log-probabilities are NaN, so
        that the result shows it whatever is chosen.

        Args:
            logits: the model's logits [V].

        Returns:
            The logits [V] in at least float32, and their log-probabilities [V] in float32. Both are −inf for excluded
            symbols.

        Raises:
            ValueError: if the logits have more than one axis, or `end` is not among the model's symbols.
        """
        if logits.ndim != 1:
            raise ValueError(f"expected logits [V] of one symbol from step, got shape {logits.shape}")
        if isinstance(self.end, Integral) and int(self.end) >= len(logits):
            raise ValueError(f"end={self.end!r} must be below {len(logits)}, the number of the model's symbols")
        # A sum of exponentials in half precision loses the small ones.
        logits = logits if jnp.finfo(logits.dtype).bits >= 32 else logits.astype(jnp.float32)
        logs = jax.nn.log_softmax(logits).astype(jnp.float32)
        symbols = jnp.arange(logits.shape[0], dtype=jnp.int32)
        never = (symbols == self.begin) | (symbols == self.pad)
        return jnp.where(never, -jnp.inf, logits), jnp.where(never & ~jnp.isnan(logs), -jnp.inf, logs)


class Search(ABC, metaclass=Documented):
    """Base class of decoding methods. The fields of a subclass are the method's options.

    `search` is called for one example. Use `jax.vmap` to decode a batch. Each example then gives the same result as
    alone.
    """

    @abstractmethod
    def search(self, problem: DecodeProblem, key: PRNGKeyArray | None = None) -> SearchResult:
        """Decodes one example.

        `begin` and `pad` are never chosen, and `end` is followed by `pad`. If no other symbol is possible, the score is
        −inf and the symbols from there on are meaningless.

        Args:
            problem: the problem.
            key: random key, for methods that sample.

        Returns:
            The sequences that were found, the best first.
        """


class Sequential(Search):
    """Base class of methods that generate a sequence by choosing one token after another."""

    @abstractmethod
    def choose(self, logits: Float[Array, " V"], key: PRNGKeyArray | None, t: Int[Array, ""]) -> Int[Array, ""]:
        """Returns the token of step t.

        Args:
            logits: the model's logits of possible symbols [V], −inf for the others.
            key: random key of the sequence, or None.
            t: the step, from 0.
        """

    def search(self, problem: DecodeProblem, key: PRNGKeyArray | None = None) -> SearchResult:
        """Generates one sequence. See `Search.search`."""

        def append(carry, t):
            state, token, done = carry
            logits, state = problem.step(state, token)
            logits, logs = problem.possible(logits)
            token = jnp.where(done, problem.pad, self.choose(logits, key, t)).astype(jnp.int32)
            return (state, token, done | (token == problem.end)), (token, jnp.where(done, 0.0, logs[token]))

        start = (problem.state, jnp.asarray(problem.begin, jnp.int32), jnp.asarray(False))
        _, (tokens, logs) = jax.lax.scan(append, start, jnp.arange(problem.length, dtype=jnp.int32))
        return SearchResult(tokens[None], logs.sum()[None])


def check_at_least_one(**fields: int) -> None:
    """Raises ValueError, with the field's name, unless every value is a whole number of at least 1."""
    for name, value in fields.items():
        if not isinstance(value, Integral) or int(value) < 1:
            raise ValueError(f"{name}={value!r} must be at least 1 and a whole number")
