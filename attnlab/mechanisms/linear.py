"""Linear attention, with any feature map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.position_state import dense_mask
from attnlab.ops import chunks, edges, linear
from attnlab.ops.counts import check_counts
from attnlab.ops.feature import EluPlusOne, Feature, Mapped, RotatedFeatures
from attnlab.ops.precision import accumulation_dtype, matmul

# More features than this are made for so many rows at a time: of a whole sequence they would be larger than all else.
WIDE, ROWS = 1024, 256


@dataclass(frozen=True)
class Linear(Mechanism):
    """y_t = φ(q_t) Σ_j ψ(k_j)ᵀ v_j / φ(q_t)·Σ_j ψ(k_j) (Katharopoulos et al. 2020, eq. 4-5 and 18-20).

    `feature` is one of `attnlab.FEATURES`; `normalise` False leaves the denominator out. O((T+S)·M·V) where the
    mask depends on the keys alone, and causally, of a whole sequence, by blocks of `block` tokens (`extend` takes all
    that it is given at once); its state is an [M, V+1] matrix ([M, V] without the denominator), of one size for any
    length. Other masks cost O(T·S). A row whose weights sum to zero answers zero.

    Does not turn: turned before the map, q and k no longer meet by their distance. Its features may be turned after
    it, but for the denominator, which could cross zero (Su et al. 2021, eq. 19).

    Raises ValueError for a block below 1, and for the unnormalised form of a map that is known up to a factor.
    """

    feature: Feature = EluPlusOne()
    normalise: bool = True
    block: int = 64

    def __post_init__(self):
        check_counts(block=self.block)
        if not isinstance(self.feature, Feature):
            raise ValueError(f"feature={self.feature!r} must be a feature map itself, as attnlab.FEATURES['relu'] is")
        if self.feature.scaled and not self.normalise:
            raise ValueError(f"normalise=False: {self.feature} is known up to a factor that only normalising removes")

    @property
    def line(self) -> str:
        """A line about this one, in a list of several."""
        return f"linear attention, {self.feature.line}"

    @property
    def placed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the feature map."""
        return self.feature.placed

    @property
    def learned(self):
        """Those of the feature map."""
        return self.feature.learned

    def initial(self, key, K, V):
        """As the feature map."""
        return self.feature.initial(key, K)

    def with_rotary(self, position):
        """With its feature map turned, unless that tells places by itself."""
        return None if self.feature.placed else replace(self, feature=RotatedFeatures(self.feature, position=position))

    def sized(self, length):
        """With its feature map for that length."""
        return replace(self, feature=self.feature.sized(length))

    def fit(self, length):
        """As the feature map."""
        self.feature.fit(length)

    def check(self, block):
        """As the feature map."""
        self.feature.check(block.positions)

    def weights(self, q, k, allowed, *, i, j, bias=None, **learned):
        """[T S]: φ(q)·ψ(k) of the allowed pairs; where normalised, over the sum of what is counted of a row."""
        q, k, of = self._met(q, k, i, j, learned)
        fade = 1 if k.scale is None else linear.relative_decay(k.scale, allowed)
        met = lambda q, k: jnp.where(allowed, of(matmul(q, k.T)), 0) * fade
        weights = met(q.rows, k.rows)
        if not self.normalise:
            return weights
        counted = weights if q.counted is None else met(q.counted, k.counted)
        return linear.divide_by_total(weights, counted.sum(axis=1, keepdims=True))

    def edge_weights(self, q, k, ends, *, i, j, bias=None, **learned):
        """[E]: φ(q)·ψ(k) at the edges; where normalised, over the sum of what is counted of a query's."""
        q, k, of = self._met(q, k, i, j, learned)
        fade = 1
        if k.scale is not None:
            scale = jnp.where(ends.valid, edges.gather(k.scale, ends.s), linear.NO_SCALE)
            fade = jnp.exp(scale - edges.gather(edges.max_per_query(scale, ends), ends.t))
        at = lambda q, k: of(jnp.sum(edges.gather(q, ends.t) * edges.gather(k, ends.s), axis=1))
        met = lambda q, k: jnp.where(ends.valid, at(q, k), 0) * fade
        found = met(q.rows, k.rows)
        if not self.normalise:
            return found
        counted = found if q.counted is None else met(q.counted, k.counted)
        total = edges.gather(edges.sum_per_query(counted, ends), ends.t)
        return linear.divide_by_total(found[:, None], total[:, None])[:, 0]

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **learned):
        """Every query against one sum over the keys, where the mask allows that sum, and pairs are not less work."""
        if self._few(len(q), len(k), q.shape[1], v.shape[1]):
            return self._by_pairs(q, k, v, mask, i, j, learned)
        if (factors := mask.factors(i, j)) is None:
            # Weights that are not normalised may be beyond half precision, though what they make of values is not.
            return (
                super()
                .attend_all(q, k, v.astype(accumulation_dtype(v.dtype)), mask, i=i, j=j, bias=bias, **learned)
                .astype(v.dtype)
            )
        i, j = self._places(i, j)
        dtype = accumulation_dtype(v.dtype)

        def gather(k, v, j, seen):
            k = self.feature.key(k, j, **learned)
            weights = seen if k.scale is None else linear.relative_decay(k.scale, seen[None, :])[0]
            weighed = [linear.apply_weights(rows, weights[:, None]).astype(dtype) for rows in self._rows(k)]
            return [linear.sum_outer_products(*part) for part in zip(weighed, self._values(v, k), strict=True)]

        def read(q, i):
            met = zip(self._rows(self.feature.query(q, i, **learned)), states, strict=True)
            return jnp.concatenate([matmul(rows.astype(dtype), state) for rows, state in met], axis=1)

        # Scales are over the largest of all keys, and so those are mapped at once.
        many = self.feature.dim(k.shape[1]) > WIDE and not self.feature.scaled
        size = ROWS if many else max(len(q), len(k))
        states = chunks.sum_chunks(gather, (k, v, j, factors[1]), size)
        return self._answer(chunks.map_chunks(read, (q, i), size), v)

    def attend_causal(self, q, k, v, block, *, bias=None, **learned):
        """By blocks and a state, unless pairs are less work: after a whole sequence nobody asks for the state."""
        if not self._few(len(q), len(k), q.shape[1], v.shape[1]):
            return super().attend_causal(q, k, v, block, bias=bias, **learned)
        order = np.arange(len(q), dtype=np.int32)
        return self._by_pairs(q, k, v, block.mask, order, order, learned)

    def init_memory(self, length, K, V, dtype):
        """The empty sum, [M, V+1] or [M, V], and its scale where the map has one: float32 at least.

        In bfloat16 the sums would lose most of a long sequence.
        """
        return self._empty(K, V, accumulation_dtype(dtype))

    def update(self, memory, q, k, v, block, *, bias=None, **learned):
        """One block, given the sum over all before it."""
        (state, peak), i = memory, block.positions
        met = None
        if self.feature.closed:
            few_q, few_k, of = self.feature.kernel(q, k, **learned)
            met = of(matmul(few_q, few_k.T))
        q, k = self.feature.query(q, i, **learned), self.feature.key(k, i, **learned)
        reach = linear.Visibility(block.pairs, block.state_visible, block.enters_state, block.state_survives)
        if k.scale is not None:
            reach, peak = linear.relative_visibility(k.scale, peak, reach)
        parts = list(zip(self._rows(q), self._rows(k), self._values(v, k), strict=True))
        states = jnp.split(state, [v.shape[1]], axis=1) if len(parts) == 2 else [state]
        found = [linear.chunk(state, *part, *reach, met) for state, part in zip(states, parts, strict=True)]
        y, state = (jnp.concatenate(each, axis=1) for each in zip(*found, strict=True))
        return self._answer(y, v), (state, peak)

    def cost(self, T, S, K, V, block=None):
        """One sum over the keys read by every query; causally, pairs within a block besides; or all pairs."""
        M, W = self.feature.dim(K), V + self.normalise
        # Of turned features the pairs that are counted are others; a kernel multiplies few, and squares.
        counted = M if isinstance(self.feature, RotatedFeatures) and self.normalise else 0
        pair = 2 * W + (2 * K + 3 if self.feature.closed else 2 * (M + counted))
        sums = (T + S) * (M * 2 * W + self.feature.flops(K)) + (0 if block is None else T * block * pair)
        return Cost(
            flops=T * S * pair if self._few(T, S, K, V) else sums,
            bytes=moved(T, S, K, V),
            state_bytes=4 * (M * W + self.feature.scaled),
        )

    def _places(self, i, j):
        i, j = self.feature.aligned(i, j)
        self.feature.check(i)
        self.feature.check(j)
        return i, j

    def _met(self, q, k, i, j, learned) -> tuple[Mapped, Mapped, Callable[[Array], Array]]:
        """Rows of queries and of keys, and what makes weights of their products: features, or few and a kernel."""
        i, j = self._places(i, j)
        if self.feature.closed:
            q, k, of = self.feature.kernel(q, k, **learned)
            return Mapped(q), Mapped(k), of
        return self.feature.query(q, i, **learned), self.feature.key(k, j, **learned), lambda s: s

    def _few(self, T, S, K, V) -> bool:
        """Whether a kernel of all pairs is less work than features."""
        W = V + self.normalise
        return self.feature.closed and (T + S) * self.feature.dim(K) * W > T * S * (K + W)

    def _by_pairs(self, q, k, v, mask, i, j, learned):
        """Some queries at a time against all keys, by a kernel of pairs."""
        q, k, of = self.feature.kernel(q, k, **learned)
        (values,) = self._values(v, Mapped(k))
        some = lambda q, i: matmul(jnp.where(dense_mask(mask, i, j), of(matmul(q, k.T)), 0), values)
        return self._answer(chunks.map_chunks(some, (q, i), ROWS), v)

    def _empty(self, K, V, dtype):
        state = jnp.zeros((self.feature.dim(K), V + self.normalise), dtype)
        return state, jnp.full((), linear.NO_SCALE, dtype) if self.feature.scaled else None

    def _rows(self, mapped: Mapped) -> list[Array]:
        """The features whose products are taken: of one kind, or where the weights that count are others, of two."""
        return [mapped.rows] if mapped.counted is None or not self.normalise else [mapped.rows, mapped.counted]

    def _values(self, v: Array, k: Mapped) -> list[Array]:
        """What the keys' features of each kind are multiplied with."""
        v = v.astype(accumulation_dtype(v.dtype))
        if not self.normalise:
            return [v]
        return [linear.append_ones(v)] if k.counted is None else [v, jnp.ones_like(v[:, :1])]

    def _answer(self, y, v):
        return (linear.normalise(y) if self.normalise else y).astype(v.dtype)
