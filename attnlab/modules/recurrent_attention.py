"""The attention of recurrent states to an encoded source."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.inputs import shape_of
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.softmax import Softmax
from attnlab.modules.attention_layer import check_heads
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.observable import Observable
from attnlab.ops.learned_score import LEARNED
from attnlab.ops.mask import ArrayOrNumpy, Full, KeyPadding, Mask
from attnlab.ops.precision import accumulation_dtype, matmul, weighted_sum
from attnlab.ops.score import additive, concat, hidden_scores

# Scores tanh(q W_q + k W_k)·w: for each, a function from its learned arrays to (W_q, W_k, w). A decoder that reads one
# query at a time computes k W_k once, in `RecurrentAttention.ready`.
HALVES: dict[Callable, Callable] = {
    additive: lambda w_q, w_k, w: (w_q, w_k, w),
    concat: lambda w, u: (w[0], w[1], u),
}


class RecurrentAttention(Observable):
    """Attention of recurrent states s [T D] to an encoded source m [S M], by any mechanism: c_t = Σ_j a_tj m_j.

    With one head, the queries are the states and the keys are the encoder's vectors (Luong, Pham, Manning 2015), or
    m W_k if their size differs from that of the states. With several heads, the queries are s W_q and the keys m W_k.
    The values are the encoder's vectors, split among the heads. Values and outputs are not projected.

    Args:
        key: Key for the initial parameters.
        width: Size D of the states.
        encoder_size: Size M of the encoder's vectors.
        heads: Number of heads; must divide `width` and `encoder_size`.
        mechanism: The attention mechanism.

    Raises:
        ValueError: `heads` does not divide `width` or `encoder_size`.
    """

    def __init__(self, key: PRNGKeyArray, width: int, encoder_size: int, heads: int, mechanism: Mechanism):
        check_heads(width, heads, heads)
        if encoder_size % heads:
            raise ValueError(f"{heads=} must divide {encoder_size=}, the width of the values that are split")
        self.heads, self.mechanism = heads, mechanism
        self.sizes = size, values = width // heads, encoder_size // heads
        plain = lambda name, inputs, outputs: Dense(fold_key(key, name), inputs, outputs, bias=False)
        self.q = plain("q", width, width) if heads > 1 else None
        self.k = plain("k", encoder_size, width) if heads > 1 or encoder_size != width else None
        self.tokens = nnx.Dict(
            {
                name: Dense(fold_key(key, name), encoder_size, heads * math.prod(shape_of(shape, size, values)))
                for name, shape in mechanism.tokens.items()
            }
        )
        self.queries = nnx.Dict(
            {
                name: Dense(fold_key(key, name), width, heads * math.prod(shape_of(shape, size, values)))
                for name, shape in mechanism.queries.items()
            }
        )
        self.learned = init_learned(mechanism, key, size, values, heads)

    def keys_values(self, encoded: Float[Array, "S M"]) -> dict[str, Array]:
        """Return "k", "v" and the mechanism's extra inputs by name, each [S H ...]."""
        size, values = self.sizes
        flat = {"k": encoded if self.k is None else self.k(encoded), "v": encoded}
        flat |= {name: dense(encoded) for name, dense in self.tokens.items()}
        shapes = {"k": (size,), "v": (values,)}
        shapes |= {name: shape_of(shape, size, values) for name, shape in self.mechanism.tokens.items()}
        return {name: x.reshape(encoded.shape[0], self.heads, *shapes[name]) for name, x in flat.items()}

    def precompute_keys(self, known: dict[str, Array]) -> dict[str, Array]:
        """Return the result of `keys_values` for `step`, with the work on the keys that every step would repeat.

        With additive and concat scores, k becomes k W_k. With others, nothing changes.
        """
        if (score := self._sum) is None:
            return known
        one = lambda k, fixed: matmul(
            k.astype(accumulation_dtype(k.dtype)), _halves(score, fixed)[1].astype(accumulation_dtype(k.dtype))
        )
        return known | {"k": jax.vmap(one, in_axes=(1, 0), out_axes=1)(known["k"], self._fixed())}

    def read(
        self, x: Float[Array, "T D"], known: dict[str, Array], mask: Mask = Full()
    ) -> tuple[Float[Array, "T M"], Array | None]:
        """Attend from states at positions 0…T−1 to keys at positions 0…S−1.

        Args:
            x: The states.
            known: The result of `keys_values`.
            mask: Which state may attend to which key, by position.

        Returns:
            The contexts c [T M], and the attention map [H T S], or None without an observer.
        """
        return self._by_heads(self._attend, x, known, mask, {"i": np.arange(len(x), dtype=np.int32)})

    def step(
        self, x: Float[Array, " D"], known: dict[str, Array], keep: Bool[ArrayOrNumpy, " S"], i: Int[ArrayOrNumpy, ""]
    ) -> tuple[Float[Array, " M"], Array | None]:
        """Attend from one state.

        Args:
            x: The state.
            known: The result of `precompute_keys`.
            keep: Which keys are not padding.
            i: Position of the state.

        Returns:
            The context c [M], and the attention map [H S], or None without an observer.
        """
        # For one query, a row of weights is as cheap as any other form of a pairwise mechanism.
        head = self._weigh if isinstance(self.mechanism, Pairwise) else self._attend
        c, maps = self._by_heads(head, x[None, :], known, KeyPadding(keep), {"i": jnp.asarray(i, jnp.int32)[None]})
        return c[0], None if maps is None else maps[:, 0]

    def _attend(self, q, k, v, mask: Mask, places: dict, extra: dict) -> tuple[Array, Array | None]:
        """Return the output and the observation of one head."""
        y = self.mechanism.attend(q, k, v, mask, **places, **extra)
        return y, self.observed(self.mechanism, q, k, mask, **places, **extra)

    def _weigh(self, q, k, v, mask: Mask, places: dict, extra: dict) -> tuple[Array, Array | None]:
        """Return the output and the observation of one head for one query, given keys from `precompute_keys`."""
        mechanism, i, j = self.mechanism, places["i"], np.arange(k.shape[0], dtype=np.int32)
        assert isinstance(mechanism, Pairwise)  # otherwise `step` calls `_attend`
        if (score := self._sum) is not None:
            w_q, _, w = _halves(score, extra)
            q = matmul(q.astype(k.dtype), w_q.astype(k.dtype))
            extra = {name: x for name, x in extra.items() if name not in LEARNED[score]}
            mechanism = replace(mechanism, score=lambda q, k: hidden_scores(q, k, w.astype(k.dtype)))
        weights = mechanism.weights(q, k, jnp.asarray(mask(i, j)), i=i, j=j, **extra)
        return weighted_sum(weights, v), self.observed(mechanism, q, k, mask, **places, **extra)

    def _by_heads(
        self, head: Callable, x, known: dict[str, Array], mask: Mask, places: dict
    ) -> tuple[Array, Array | None]:
        q = (x if self.q is None else self.q(x)).reshape(x.shape[0], self.heads, -1)
        size, values = self.sizes
        queries = {
            name: self.queries[name](x).reshape(x.shape[0], self.heads, *shape_of(shape, size, values))
            for name, shape in self.mechanism.queries.items()
        }

        def one(q, queries, known, fixed):
            extra = {name: known[name] for name in self.mechanism.tokens} | queries | fixed
            return head(q, known["k"], known["v"], mask, places, extra)

        c, maps = jax.vmap(one, in_axes=(1, 1, 1, 0), out_axes=(1, 0))(q, queries, known, self._fixed())
        return c.reshape(x.shape[0], -1), maps

    def _fixed(self) -> dict[str, Array]:
        return extras(self.mechanism, self.learned, self.heads)

    @property
    def _sum(self) -> Callable | None:
        """The score of the mechanism if it is in `HALVES`, else None."""
        score = self.mechanism.score if isinstance(self.mechanism, Softmax) else None
        return score if score in HALVES else None


def _halves(score: Callable, extra: dict[str, Array]) -> tuple[Array, Array, Array]:
    """Return W_q, W_k and w of a score in `HALVES`, given the extra inputs of the mechanism."""
    return HALVES[score](**{name: extra[name] for name in LEARNED[score]})
