"""What every way of decoding is asked, and what it answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray


class SearchResult(NamedTuple):
    """N texts for one example, the best first: `tokens` [N length] int32, `scores` [N] float32.

    A text keeps its `end` and has pads behind it. Its score is the log-probability of its tokens, in nats, among all
    symbols of the model (a beam's is divided by its penalty); NaN where the model answered NaN.
    """

    tokens: Int[Array, "N length"]
    scores: Float[Array, " N"]


@dataclass(frozen=True)
class DecodeProblem:
    """A model, its state before the first symbol, the special symbols, and how many tokens there may be."""

    step: Callable
    state: Any
    begin: Any
    end: Any
    length: int
    pad: Any

    def next_scores(self, state: Any, token: Int[Array, ""]) -> tuple[Float[Array, " V"], Float[Array, " V"], Any]:
        """What may follow `token`: the model's scores, in float32 at least, their log-probabilities, the new state.

        Both are −inf for `begin` and `pad`, whose share of the probability is not given to others. Where one score is
        NaN, all log-probabilities are: it shows, whatever is chosen.
        """
        scores, state = self.step(state, token)
        # Sums of half-precision exponentials lose the tail.
        scores = scores if jnp.finfo(scores.dtype).bits >= 32 else scores.astype(jnp.float32)
        logs = jax.nn.log_softmax(scores).astype(jnp.float32)
        symbols = jnp.arange(scores.shape[0], dtype=jnp.int32)
        never = (symbols == self.begin) | (symbols == self.pad)
        return jnp.where(never, -jnp.inf, scores), jnp.where(never & ~jnp.isnan(logs), -jnp.inf, logs), state

    def generate(self, choose: Callable) -> tuple[Int[Array, " length"], Float[Array, ""]]:
        """A text and its log-probability; its token t is `choose(scores [V], t)`."""

        def append(carry, t):
            state, token, done = carry
            scores, logs, state = self.next_scores(state, token)
            token = jnp.where(done, self.pad, choose(scores, t)).astype(jnp.int32)
            return (state, token, done | (token == self.end)), (token, jnp.where(done, 0.0, logs[token]))

        start = (self.state, jnp.asarray(self.begin, jnp.int32), jnp.asarray(False))
        _, (tokens, logs) = jax.lax.scan(append, start, jnp.arange(self.length, dtype=jnp.int32))
        return tokens, logs.sum()


class Search(ABC):
    """A way from a model that scores the next symbol to an answer; its fields say which.

    Called for one example: `step(state, token) -> (scores [V], state)` scores what follows `token`, `state` is the
    one before `begin`, and `length` bounds the tokens, `end` among them. `begin` and `pad` are never chosen (where no
    other symbol is possible the score is −inf, and symbols from there on mean nothing), and after `end` follow `pad`s.
    `key` is for those that draw. `jax.vmap` decodes a batch, each example as it would alone.

    Raises ValueError where `length` is below 1, where the state says (`state.length`) that it has room for fewer, and
    where `end` is one of those that are never chosen.
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
        """The answers to one example."""
        at_least_one(length=length)
        if length > (room := getattr(state, "length", length)):
            raise ValueError(f"{length=} is more than the {room} tokens that the state has room for: start it longer")
        if isinstance(end, Integral) and end in [mark for mark in (begin, pad) if isinstance(mark, Integral)]:
            raise ValueError(f"{end=} must be another symbol than {begin=} and {pad=}, which are never chosen")
        return self.search(DecodeProblem(step, state, begin, end, length, pad), key)

    @abstractmethod
    def search(self, request: DecodeProblem, key: PRNGKeyArray | None) -> SearchResult:
        """The answers to a request that can be met."""


def at_least_one(**fields: int) -> None:
    """Raise ValueError naming the field that is no whole number of at least 1."""
    for name, value in fields.items():
        if not isinstance(value, Integral) or int(value) < 1:
            raise ValueError(f"{name}={value!r} must be at least 1, and whole")
