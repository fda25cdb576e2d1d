"""Beam search: extends several hypotheses in parallel and returns the best that finish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from attnlab.decoding.base import DecodeProblem, Search, SearchResult, check_at_least_one
from attnlab.decoding.shared_state import axes, shared

STEEPEST = 10  # a larger penalty overflows float32 for long sequences and ranks by length only


@dataclass(frozen=True)
class Beam(Search):
    """Beam search with a length penalty.

    score(y) = log P(y) / ((5 + |y|) / 6)^penalty, where |y| counts `end`

    At each step, every live hypothesis is extended by every symbol. Among the `size` most likely results, those that
    end are finished. The `size` most likely results that do not end stay live. The search stops when no live hypothesis
    can overtake the finished ones. Size 1 with penalty 0 is greedy decoding.

    A hypothesis that has not ended after `length` tokens is unfinished. Unfinished ones are returned only if fewer than
    `best` are finished, and after the finished ones. All sequences are distinct. If there are too few, rows of `pad`
    with score −inf follow.

    Raises:
        ValueError: if a field has an invalid value.

    Source: Wu et al. 2016, section 7, eq. 14.
    """

    size: int = 5
    """Number of live hypotheses."""
    penalty: float = 1.0
    """Exponent of the length penalty. 0 ranks by log-probability."""
    best: int = 1
    """Number of sequences to return, at most `size`."""

    def __post_init__(self):
        check_at_least_one(size=self.size, best=self.best)
        if self.best > self.size:
            raise ValueError(f"best={self.best} must be at most size={self.size}")
        if not 0 <= self.penalty <= STEEPEST:
            raise ValueError(f"penalty={self.penalty} must be at least 0 and at most {STEEPEST}")

    def search(self, problem, key=None):
        """Extends hypotheses until no live one can improve the result. See `Search.search`."""
        lengths = range(1, problem.length + 1)
        norms = jnp.asarray([((5 + n) / 6) ** self.penalty for n in lengths], jnp.float32)

        def going(search: BeamState) -> Bool[Array, ""]:
            # Log-probability never increases with further tokens, and no norm exceeds the last one. So a live
            # hypothesis of log-probability l ≤ 0 finishes with a score of at most l / norms[-1].
            bound = search.live.scores[0] / norms[-1]
            return (search.t < problem.length) & (bound > search.finished.scores[-1]) & ~search.lost

        is_shared = shared(problem.step, problem.state, jnp.asarray(problem.begin, jnp.int32))

        def advance(search: BeamState) -> BeamState:
            # The loop ends when no example of a batch goes on. An example that has ended keeps its hypotheses. Its
            # model's state and the number of tokens, which it does not need, advance with the others.
            on, new = going(search), self._advance(problem, norms, is_shared, search)
            kept = {name: getattr(search, name) for name in ("last", "live", "finished", "lost")}
            fresh = {name: getattr(new, name) for name in kept}
            return new._replace(**jax.tree.map(lambda a, b: jnp.where(on, a, b), fresh, kept))

        search = jax.lax.while_loop(lambda search: in_any(going(search)), advance, self._start(problem, is_shared))
        found = _join(search.finished, search.live._replace(scores=search.live.scores / norms[-1]))
        # Both lists are sorted. The stable sort only moves empty rows to the end.
        order = jnp.argsort(jnp.isneginf(found.scores))[: self.best]
        tokens, scores = found.tokens[order], found.scores[order]
        tokens = jnp.where(jnp.isneginf(scores)[:, None], problem.pad, tokens)
        return SearchResult(tokens, jnp.where(search.lost, jnp.nan, scores))

    def _start(self, problem: DecodeProblem, is_shared: PyTree) -> BeamState:
        """Returns the initial state with one empty hypothesis."""
        live = _none(self.size, problem)
        copies = lambda leaf, one: leaf if one else jnp.broadcast_to(leaf, (self.size, *jnp.shape(leaf)))
        return BeamState(
            t=jnp.asarray(0, jnp.int32),
            state=jax.tree.map(copies, jax.tree.map(jnp.asarray, problem.state), is_shared),
            last=jnp.full(self.size, problem.begin, jnp.int32),
            live=live._replace(scores=live.scores.at[0].set(0)),
            finished=_none(self.best, problem),
            lost=jnp.asarray(False),
        )

    def _advance(
        self, problem: DecodeProblem, norms: Float[Array, " length"], is_shared: PyTree, search: BeamState
    ) -> BeamState:
        """Extends every live hypothesis by one symbol, and keeps the best that end and the best that do not."""
        grown, parents, state, lost = self._grow(problem, is_shared, search)
        last, size = grown.tokens[:, search.t], self.size
        ends = last == problem.end
        # Only the `size` most likely results may finish. Otherwise a sequence would finish at every step, however
        # unlikely its end.
        finishing = jnp.where(ends[:size], grown.scores[:size] / norms[search.t], -jnp.inf)
        finished, _ = _top(_join(search.finished, SearchResult(grown.tokens[:size], finishing)), self.best)
        # A hypothesis that ends leaves the beam, even if it is not among the best finished ones.
        live, kept = _top(grown._replace(scores=jnp.where(ends, -jnp.inf, grown.scores)), size)
        state = jax.tree.map(lambda leaf, one: leaf if one else leaf[parents[kept]], state, is_shared)
        return BeamState(search.t + 1, state, last[kept], live, finished, lost)

    def _grow(
        self, problem: DecodeProblem, is_shared: PyTree, search: BeamState
    ) -> tuple[SearchResult, Int[Array, " 2*size"], PyTree, Bool[Array, ""]]:
        """Returns the most likely extended hypotheses, their parents' indices, the parents' new states, and `lost`.

        There are twice as many as `size`. Each live hypothesis has one extension that ends, so at least `size` do not
        end.
        """
        of_states = axes(is_shared)
        logits, state = jax.vmap(problem.step, (of_states, 0), (0, of_states))(search.state, search.last)
        logits, logs = jax.vmap(problem.possible)(logits)
        # Symbols are ranked by the model's logits, as in greedy decoding. Rounding makes different sums of
        # log-probabilities equal.
        _, symbols = jax.lax.top_k(logits, min(self.size + 1, logits.shape[1]))
        before = search.live.scores[:, None]
        totals = before + jnp.take_along_axis(logs, symbols, axis=1)
        totals = jnp.where(before > -jnp.inf, totals, -jnp.inf)
        best, order = jax.lax.top_k(totals.ravel(), 2 * self.size)
        parents = order // symbols.shape[1]
        tokens = search.live.tokens[parents].at[:, search.t].set(symbols.ravel()[order])
        return SearchResult(tokens, best), parents, state, jnp.isnan(totals).any()


class BeamState(NamedTuple):
    """State of the search after t tokens. An empty hypothesis has score −inf."""

    t: Int[Array, ""]
    """Number of tokens so far."""
    state: PyTree
    """States of the model for the live hypotheses, along a leading axis. Shared arrays do not have it."""
    last: Int[Array, " size"]
    """Last token of each live hypothesis."""
    live: SearchResult
    """Live hypotheses, with log-probabilities as scores."""
    finished: SearchResult
    """Finished hypotheses, with the scores that are returned."""
    lost: Bool[Array, ""]
    """Whether the model returned NaN for a live hypothesis. The best sequence is then unknown."""


@jax.custom_batching.custom_vmap
def in_any(condition: Bool[Array, ""]) -> Bool[Array, ""]:
    """Returns whether a condition holds. Under `jax.vmap`, whether it holds in any example.

    A loop with this condition has one end for a batch. With a condition for each example, jax would copy the whole
    state of the loop at every step, to keep that of examples that have ended.
    """
    return condition


@in_any.def_vmap
def _in_any_of_batch(size: int, batched: list[bool], condition: Bool[Array, " B"]) -> tuple[Bool[Array, ""], bool]:
    return in_any(jnp.any(condition)), False


def _none(count: int, problem: DecodeProblem) -> SearchResult:
    """Returns `count` empty hypotheses."""
    tokens = jnp.full((count, problem.length), problem.pad, jnp.int32)
    return SearchResult(tokens, jnp.full(count, -jnp.inf, jnp.float32))


def _join(one: SearchResult, other: SearchResult) -> SearchResult:
    """Concatenates two lists of hypotheses."""
    return SearchResult(*(jnp.concatenate(pair) for pair in zip(one, other, strict=True)))


def _top(found: SearchResult, count: int) -> tuple[SearchResult, Int[Array, " count"]]:
    """Returns the best `count` hypotheses and their indices. Equal scores keep their order."""
    scores, order = jax.lax.top_k(found.scores, count)
    return SearchResult(found.tokens[order], scores), order
