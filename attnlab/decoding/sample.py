"""Sampling: draws each symbol from the model's distribution."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from attnlab.decoding.base import SearchResult, Sequential, check_at_least_one


@dataclass(frozen=True)
class Sample(Sequential):
    """Samples symbols from softmax(logits / temperature), optionally truncated.

    If both `top_k` and `top_p` are set, the nucleus is computed among the `top_k` symbols. `SearchResult.scores` are
    log-probabilities under the model, without temperature or truncation.

    With the same key, a different `length` or `best` gives the same sequences as far as both go.

    Raises:
        ValueError: if a field has an invalid value, or if no key is passed.

    Source: top-k, Fan et al. 2018; nucleus, Holtzman et al. 2020, section 3.1.
    """

    temperature: float = 1.0
    """Divisor of the logits, above 0. Greedy decoding is the limit 0."""
    top_k: int | None = None
    """Number of most likely symbols to draw from. None keeps all."""
    top_p: float | None = None
    """Probability of the nucleus, or None to keep all symbols.

    The nucleus is the smallest set of most likely symbols with at least this probability. It always holds the most
    likely one.
    """
    best: int = 1
    """Number of sequences that are drawn independently. They are sorted by score, and may be equal."""

    def __post_init__(self):
        check_at_least_one(best=self.best, top_k=1 if self.top_k is None else self.top_k)
        if not 0 < self.temperature < float("inf"):
            raise ValueError(
                f"temperature={self.temperature} must be above 0 and finite; use greedy decoding instead of 0"
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p} must be above 0 and at most 1")

    def search(self, problem, key=None):
        """Draws the sequences, each with its own key."""
        if key is None:
            raise ValueError(f"key=None: {self} requires a random key")
        keys = jax.vmap(lambda n: jax.random.fold_in(key, n))(jnp.arange(self.best, dtype=jnp.int32))
        found = jax.vmap(lambda key: super(Sample, self).search(problem, key))(keys)
        order = jnp.argsort(-found.scores[:, 0])
        return SearchResult(found.tokens[order, 0], found.scores[order, 0])

    def choose(self, logits, key, t):
        """Draws one symbol."""
        assert key is not None  # `search` requires one
        key = jax.random.fold_in(key, t)
        # The largest logit becomes 0 before the division. Near temperature 0 the others then overflow to −inf.
        logits = (logits - logits.max()) / max(self.temperature, float(jnp.finfo(logits.dtype).tiny))
        if self.top_k is None and self.top_p in (None, 1):
            return jax.random.categorical(key, logits).astype(jnp.int32)
        ranked, symbols = jax.lax.top_k(logits, min(self.top_k or len(logits), len(logits)))
        # Rounding in the sum would let top_p = 1 cut the tail.
        if self.top_p is not None and self.top_p < 1:
            before = jnp.cumsum(jax.nn.softmax(ranked))[:-1]
            # No probability precedes the most likely symbol. −1 instead of 0 keeps it even if top_p rounds to 0.
            before = jnp.pad(before, (1, 0), constant_values=-1)
            ranked = jnp.where(before < self.top_p, ranked, -jnp.inf)
        return symbols[jax.random.categorical(key, ranked)]
