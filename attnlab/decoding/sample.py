"""Sampling: each symbol drawn from what the model holds possible."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.decoding.base import Search, SearchResult, at_least_one


@dataclass(frozen=True)
class Sample(Search):
    """Symbols drawn from softmax(scores / temperature), cut to the `top_k` likeliest, then to their nucleus.

    Top-k: Fan et al. 2018. The nucleus is the smallest set whose probability, among those left, is at
    least `top_p`; the likeliest always stays (Holtzman et al. 2020, section 3.1). None cuts nothing. `best` texts are
    drawn independently and answered the likeliest first; one may come twice. Scores are the model's own: neither
    temperature nor cut shows in them.

    A key gives the same texts for every `length`, as far as that goes, and a larger `best` keeps those of a smaller.

    Raises ValueError naming the field for what cannot work, and where there is no key.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    best: int = 1

    def __post_init__(self):
        at_least_one(best=self.best, top_k=1 if self.top_k is None else self.top_k)
        if not 0 < self.temperature < float("inf"):
            raise ValueError(
                f"temperature={self.temperature} must be above 0 and finite; greedy decoding is its limit 0"
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p} must be above 0 and at most 1")

    def search(self, request, key):
        """Draw after draw, each with a key of its own, and so each of its tokens."""
        if key is None:
            raise ValueError(f"key=None: {self} draws symbols, and needs a key")

        def draw(n):
            own = jax.random.fold_in(key, n)
            return request.generate(lambda scores, t: self._draw(scores, jax.random.fold_in(own, t)))

        tokens, scores = jax.vmap(draw)(jnp.arange(self.best, dtype=jnp.int32))
        order = jnp.argsort(-scores)
        return SearchResult(tokens[order], scores[order])

    def _draw(self, scores: Float[Array, " V"], key: PRNGKeyArray) -> Int[Array, ""]:
        # The greatest becomes 0 before it is divided: near temperature 0 the others overflow, to −inf.
        scores = (scores - scores.max()) / max(self.temperature, float(jnp.finfo(scores.dtype).tiny))
        ranked, symbols = jax.lax.top_k(scores, min(self.top_k or len(scores), len(scores)))
        # Sums round: 1 would cut the tail.
        if self.top_p is not None and self.top_p < 1:
            before = jnp.cumsum(jax.nn.softmax(ranked))[:-1]
            # Nothing is before the likeliest; −1 keeps it where top_p rounds to 0.
            before = jnp.pad(before, (1, 0), constant_values=-1)
            ranked = jnp.where(before < self.top_p, ranked, -jnp.inf)
        return symbols[jax.random.categorical(key, ranked)]
