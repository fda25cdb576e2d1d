"""The contract of every decoding method: its problem, its result and its base class."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

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


@dataclass(frozen=True)
class DecodeProblem:
    """One decoding problem: a model, its initial state, the special symbols and the maximum length."""

    step: Callable
    """Function `step(state, token) -> (scores [V], state)` that scores what follows `token`."""
    state: Any
    """State of the model before the first symbol."""
    begin: Any
    """Symbol that comes before the first token. It is never chosen."""
    end: Any
    """Symbol that ends a sequence."""
    length: int
    """Maximum number of tokens, including `end`."""
    pad: Any
    """Symbol that follows `end`. It is never chosen."""

    def next_scores(self, state: Any, token: Int[Array, ""]) -> tuple[Float[Array, " V"], Float[Array, " V"], Any]:
        """Scores the symbols that may follow `token`.

        Scores and log-probabilities of `begin` and `pad` are −inf. Their probability is not redistributed to other
        symbols. If one score is NaN, all log-probabilities are NaN, so that the result shows it whatever is chosen.

        Args:
            state: state of the model before `token`.
            token: the last symbol.

        Returns:
            The model's scores [V] in at least float32, their log-probabilities [V] in float32, and the new state.
        """
        scores, state = self.step(state, token)
        # A sum of exponentials in half precision loses the small ones.
        scores = scores if jnp.finfo(scores.dtype).bits >= 32 else scores.astype(jnp.float32)
        logs = jax.nn.log_softmax(scores).astype(jnp.float32)
        symbols = jnp.arange(scores.shape[0], dtype=jnp.int32)
        never = (symbols == self.begin) | (symbols == self.pad)
        return jnp.where(never, -jnp.inf, scores), jnp.where(never & ~jnp.isnan(logs), -jnp.inf, logs), state

    def generate(self, choose: Callable) -> tuple[Int[Array, " length"], Float[Array, ""]]:
        """Generates one sequence by choosing one token after another.

        Args:
            choose: function `choose(scores [V], t)` that returns the token at step t.

        Returns:
            The tokens [length] and their log-probability.
        """

        def append(carry, t):
            state, token, done = carry
            scores, logs, state = self.next_scores(state, token)
            token = jnp.where(done, self.pad, choose(scores, t)).astype(jnp.int32)
            return (state, token, done | (token == self.end)), (token, jnp.where(done, 0.0, logs[token]))

        start = (self.state, jnp.asarray(self.begin, jnp.int32), jnp.asarray(False))
        _, (tokens, logs) = jax.lax.scan(append, start, jnp.arange(self.length, dtype=jnp.int32))
        return tokens, logs.sum()


class Search(ABC, metaclass=Documented):
    """Base class of decoding methods. The fields of a subclass are the method's options.

    An instance is called for one example. Use `jax.vmap` to decode a batch. Each example then gives the same result as
    alone.
    """

    def __call__(
        self,
        step: Callable,
        state: Any,
        begin: int,
        end: int,
        length: int,
        pad: int = 0,
        key: PRNGKeyArray | None = None,
    ) -> SearchResult:
        """Decodes one example.

        `begin` and `pad` are never chosen, and `end` is followed by `pad`. If no other symbol is possible, the score is
        −inf and the symbols from there on are meaningless.

        Args:
            step: function `step(state, token) -> (scores [V], state)` that scores what follows `token`.
            state: state of the model before `begin`.
            begin: symbol that comes before the first token.
            end: symbol that ends a sequence.
            length: maximum number of tokens, including `end`.
            pad: symbol that follows `end`. Default: 0.
            key: random key, for methods that sample.

        Returns:
            The sequences that were found, the best first.

        Raises:
            ValueError: if `length` is below 1 or exceeds the capacity of the state (`state.length`), or if `end` equals
                `begin` or `pad`.
        """
        at_least_one(length=length)
        if length > (room := getattr(state, "length", length)):
            raise ValueError(f"{length=} is more than the {room} tokens that the state has room for: start it longer")
        if isinstance(end, Integral) and end in [mark for mark in (begin, pad) if isinstance(mark, Integral)]:
            raise ValueError(f"{end=} must be another symbol than {begin=} and {pad=}, which are never chosen")
        return self.search(DecodeProblem(step, state, begin, end, length, pad), key)

    @abstractmethod
    def search(self, request: DecodeProblem, key: PRNGKeyArray | None) -> SearchResult:
        """Solves a checked problem. Implemented by each method.

        Args:
            request: the problem.
            key: random key, or None.
        """


def at_least_one(**fields: int) -> None:
    """Raises ValueError, with the field's name, unless every value is a whole number of at least 1."""
    for name, value in fields.items():
        if not isinstance(value, Integral) or int(value) < 1:
            raise ValueError(f"{name}={value!r} must be at least 1, and whole")
