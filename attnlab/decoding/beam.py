"""Beam search: several hypotheses side by side, and the best of those that finish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attnlab.decoding.base import DecodeProblem, Search, SearchResult, at_least_one

STEEPEST = 10  # a penalty above it leaves float32 for long texts, and ranks by length alone


@dataclass(frozen=True)
class Beam(Search):
    """The `best` of the hypotheses that a beam of `size` finds, by log P(y) / ((5 + |y|) / 6)^penalty, `end` counted.

    (Wu et al. 2016, section 7, eq. 14; penalty 0 is the plain sum.) At each step the live hypotheses grow by every
    symbol. Of the `size` likeliest results those that end are finished; the `size` likeliest that do not end live on.
    It stops where no live hypothesis can overtake the finished. Size 1 with penalty 0 is greedy decoding.

    What has not ended after `length` tokens is unfinished: such texts are answered only where fewer than `best` are
    finished, and behind them. All texts are distinct; where there are too few, rows of pads of score −inf follow.

    Raises ValueError naming the field for what cannot work.
    """

    size: int = 5
    penalty: float = 1.0
    best: int = 1

    def __post_init__(self):
        at_least_one(size=self.size, best=self.best)
        if self.best > self.size:
            raise ValueError(f"best={self.best} must be at most size={self.size}")
        if not 0 <= self.penalty <= STEEPEST:
            raise ValueError(f"penalty={self.penalty} must be at least 0 and at most {STEEPEST}")

    def search(self, request, key):
        """From `begin` until nothing can get better."""
        lengths = range(1, request.length + 1)
        norms = jnp.asarray([((5 + n) / 6) ** self.penalty for n in lengths], jnp.float32)

        def going(search: BeamState) -> Bool[Array, ""]:
            # Later log-probabilities are at most l ≤ 0, and no norm is above the last: a live hypothesis of
            # log-probability l finishes with a score of at most l / norms[-1].
            bound = search.live.scores[0] / norms[-1]
            return (search.t < request.length) & (bound > search.finished.scores[-1]) & ~search.lost

        search = jax.lax.while_loop(going, lambda search: self._advance(request, norms, search), self._start(request))
        found = _join(search.finished, search.live._replace(scores=search.live.scores / norms[-1]))
        # Both are in order: those that are none go behind, and nothing else moves.
        order = jnp.argsort(jnp.isneginf(found.scores))[: self.best]
        tokens, scores = found.tokens[order], found.scores[order]
        tokens = jnp.where(jnp.isneginf(scores)[:, None], request.pad, tokens)
        return SearchResult(tokens, jnp.where(search.lost, jnp.nan, scores))

    def _start(self, request: DecodeProblem) -> BeamState:
        """One hypothesis: nothing yet."""
        live = _none(self.size, request)
        return BeamState(
            t=jnp.asarray(0, jnp.int32),
            state=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.size, *jnp.shape(leaf))), request.state),
            last=jnp.full(self.size, request.begin, jnp.int32),
            live=live._replace(scores=live.scores.at[0].set(0)),
            finished=_none(self.best, request),
            lost=jnp.asarray(False),
        )

    def _advance(self, request: DecodeProblem, norms: Float[Array, " length"], search: BeamState) -> BeamState:
        """Every live hypothesis by a symbol; of what comes of it, the best that end and the best that do not."""
        grown, parents, state, lost = self._grow(request, search)
        last, size = grown.tokens[:, search.t], self.size
        ends = last == request.end
        # Only of the likeliest: else a text would finish at every step, however unlikely its end.
        finishing = jnp.where(ends[:size], grown.scores[:size] / norms[search.t], -jnp.inf)
        finished, _ = _top(_join(search.finished, SearchResult(grown.tokens[:size], finishing)), self.best)
        live, kept = _top(grown._replace(scores=jnp.where(ends, -jnp.inf, grown.scores)), size)
        state = jax.tree.map(lambda leaf: leaf[parents[kept]], state)
        return BeamState(search.t + 1, state, last[kept], live, finished, lost)

    def _grow(
        self, request: DecodeProblem, search: BeamState
    ) -> tuple[SearchResult, Int[Array, " 2*size"], Any, Bool[Array, ""]]:
        """The likeliest longer hypotheses, the live ones that they stem from, the states of those, and `lost`.

        They are twice as many as the beam is wide: each live one ends in one way, so that enough do not end.
        """
        scores, logs, state = jax.vmap(request.next_scores)(search.state, search.last)
        # By the model's scores, as greedy decoding is: sums of logarithms round different ones to the same.
        _, symbols = jax.lax.top_k(scores, min(self.size + 1, scores.shape[1]))
        before = search.live.scores[:, None]
        totals = before + jnp.take_along_axis(logs, symbols, axis=1)
        totals = jnp.where(before > -jnp.inf, totals, -jnp.inf)
        best, order = jax.lax.top_k(totals.ravel(), 2 * self.size)
        parents = order // symbols.shape[1]
        tokens = search.live.tokens[parents].at[:, search.t].set(symbols.ravel()[order])
        return SearchResult(tokens, best), parents, state, jnp.isnan(totals).any()


class BeamState(NamedTuple):
    """What is known after t tokens.

    Of the live hypotheses: the `state`s along a leading axis, the `last` tokens, and the log-probabilities as scores.
    The `finished` are scored as they are answered. A hypothesis that is none has −inf. `lost` says that the model
    answered NaN to a live one: which is best is then unknown.
    """

    t: Int[Array, ""]
    state: Any
    last: Int[Array, " size"]
    live: SearchResult
    finished: SearchResult
    lost: Bool[Array, ""]


def _none(count: int, request: DecodeProblem) -> SearchResult:
    tokens = jnp.full((count, request.length), request.pad, jnp.int32)
    return SearchResult(tokens, jnp.full(count, -jnp.inf, jnp.float32))


def _join(one: SearchResult, other: SearchResult) -> SearchResult:
    return SearchResult(*(jnp.concatenate(pair) for pair in zip(one, other, strict=True)))


def _top(found: SearchResult, count: int) -> tuple[SearchResult, Int[Array, " count"]]:
    """The best of them, of equals the first, and where they stood."""
    scores, order = jax.lax.top_k(found.scores, count)
    return SearchResult(found.tokens[order], scores), order
