"""Linear attention with any feature map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.recurrent import Recurrent, update_by_blocks
from attnlab.ops import chunks, edges, linear
from attnlab.ops.counts import check_counts
from attnlab.ops.feature import EluPlusOne, Feature, FeatureRows, RotatedFeatures
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.token_block import dense_mask

# If a feature map has more than WIDE features, they are computed for ROWS tokens at a time. The features of a whole
# sequence would be larger than all other arrays.
WIDE, ROWS = 1024, 256


@final
@dataclass(frozen=True)
class Linear(Pairwise, Recurrent):
    """Linear attention: softmax's exponential is replaced by a product of features.

    y_t = φ(q_t) Σ_j ψ(k_j)ᵀ v_j / φ(q_t)·Σ_j ψ(k_j)

    Time is O((T+S)·M·V) if the mask depends only on the keys, and for a causal whole sequence, which is processed by
    blocks. Other masks take O(T·S). `extend` processes all given tokens as one block. The state is a matrix [M, V+1],
    or [M, V] without the denominator. Its size does not depend on the length. A row whose weights sum to zero returns
    zero.

    Rotary positions are not applied to q and k: after the feature map, their product would not depend on distance.
    `with_rotary` rotates the features instead, but not in the denominator, which could cross zero (Su et al. 2021, eq.
    19).

    Raises:
        ValueError: if `block` is below 1, if `feature` is not a feature map, or if `normalise` is False and the map is
            known only up to a factor.

    Source: Katharopoulos et al. 2020, eq. 4-5 and 18-20.
    """

    feature: Feature = EluPlusOne()
    """Feature map, one of `attnlab.FEATURES`."""
    normalise: bool = True
    """Whether to divide by the sum of the weights. False leaves the denominator out."""
    block: int = 64
    """Number of tokens per block in a causal whole sequence."""

    def __post_init__(self):
        check_counts(block=self.block)
        if not isinstance(self.feature, Feature):
            raise ValueError(f"feature={self.feature!r} must be a feature map, for example FEATURES['relu']")
        if self.feature.scaled and not self.normalise:
            raise ValueError(
                f"normalise=False is not supported with feature={self.feature}, which is known only up to a factor"
            )

    @property
    def line(self) -> str:
        """One-line description for lists of mechanisms."""
        return f"Linear attention, {self.feature.line}"

    @property
    def traits(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Weights depend on positions if the features do."""
        return Traits(edges=True, position_dependent=self.feature.position_dependent)

    @property
    def learned(self):
        """Learned arrays of the feature map."""
        return self.feature.learned

    def initial(self, key, K, V):
        """Returns initial values of the feature map's learned arrays."""
        return self.feature.initial(key, K)

    def with_rotary(self, position):
        """Returns this mechanism with rotated features, or None if the feature map depends on positions already."""
        return (
            None
            if self.feature.position_dependent
            else replace(self, feature=RotatedFeatures(self.feature, position=position))
        )

    def with_length(self, length):
        """Returns this mechanism with its feature map for `length` positions."""
        return replace(self, feature=self.feature.with_length(length))

    def check_length(self, length):
        """Checks that the feature map supports `length` positions."""
        self.feature.check_length(length)

    def check_positions(self, i):
        """Checks that the feature map supports the positions."""
        self.feature.check(i)

    def weights(self, q, k, allowed, *, i, j, bias=None, **learned):
        """Returns weights [T S]: φ(q)·ψ(k) of the allowed pairs.

        If normalised, each row is divided by its sum. If the map has separate features for the denominator, as a
        rotated map has, their products are summed instead.
        """
        q, k, of = self._met(q, k, i, j, learned)
        fade = 1 if k.scale is None else linear.relative_decay(k.scale, allowed)
        met = lambda q, k: jnp.where(allowed, of(matmul(q, k.T)), 0) * fade
        weights = met(q.rows, k.rows)
        if not self.normalise:
            return weights
        denominator = weights if q.denominator_rows is None else met(q.denominator_rows, k.denominator_rows)
        return linear.divide_by_total(weights, denominator.sum(axis=1, keepdims=True))

    def edge_weights(self, q, k, ends, *, i, j, bias=None, **learned):
        """Returns weights [E]: φ(q)·ψ(k) of the edges, normalised per query as in `weights`."""
        q, k, of = self._met(q, k, i, j, learned)
        fade = 1
        if k.scale is not None:
            scale = jnp.where(ends.valid, edges.gather(k.scale, ends.s), linear.NO_SCALE)
            fade = jnp.exp(scale - edges.gather(edges.max_per_query(scale, ends), ends.t))
        at = lambda q, k: of(jnp.sum(edges.gather(q, ends.t) * edges.gather(k, ends.s), axis=1))
        met = lambda q, k: jnp.where(ends.valid, at(q, k), 0) * fade
        products = met(q.rows, k.rows)
        if not self.normalise:
            return products
        denominator = products if q.denominator_rows is None else met(q.denominator_rows, k.denominator_rows)
        total = edges.gather(edges.sum_per_query(denominator, ends), ends.t)
        return linear.divide_by_total(products[:, None], total[:, None])[:, 0]

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **learned):
        """Attends with one sum over the keys that every query reads.

        Computes pairs instead if the mask does not factor into queries and keys, or if pairs take fewer operations.
        """
        if self._few(len(q), len(k), q.shape[1], v.shape[1]):
            return self._by_pairs(q, k, v, mask, i, j, learned)
        if (factors := mask.factors(i, j)) is None:
            # Weights without normalisation may overflow half precision although the output does not. So values are
            # widened first.
            return (
                super()
                .attend_all(q, k, v.astype(accumulation_dtype(v.dtype)), mask, i=i, j=j, bias=bias, **learned)
                .astype(v.dtype)
            )
        i, j = self._places(i, j)
        dtype = accumulation_dtype(v.dtype)

        def gather(k, v, j, visible):
            k = self.feature.key(k, j, **learned)
            weights = visible if k.scale is None else linear.relative_decay(k.scale, visible[None, :])[0]
            weighed = [linear.apply_weights(rows, weights[:, None]).astype(dtype) for rows in self._rows(k)]
            return [linear.sum_outer_products(*part) for part in zip(weighed, self._values(v, k), strict=True)]

        def read(q, i):
            met = zip(self._rows(self.feature.query(q, i, **learned)), states, strict=True)
            return jnp.concatenate([matmul(rows.astype(dtype), state) for rows, state in met], axis=1)

        # Scales are relative to the largest scale of all keys. A scaled map is therefore computed for all keys at once.
        many = self.feature.dim(k.shape[1]) > WIDE and not self.feature.scaled
        size = ROWS if many else max(len(q), len(k))
        states = chunks.sum_chunks(gather, (k, v, j, factors[1]), size)
        return self._answer(chunks.map_chunks(read, (q, i), size), v)

    def attend_causal(self, q, k, v, block, *, bias=None, **learned):
        """Attends by blocks and a state, or by pairs if these take fewer operations. The final state is not needed."""
        if not self._few(len(q), len(k), q.shape[1], v.shape[1]):
            return update_by_blocks(self, self.block, q, k, v, block, bias=bias, **learned)
        order = np.arange(len(q), dtype=np.int32)
        return self._by_pairs(q, k, v, block.mask, order, order, learned)

    def init_memory(self, length, K, V, dtype):
        """Returns an empty sum [M, V+1] or [M, V] in at least float32, and its scale if the map has scales, else None.

        A sum in bfloat16 would lose most of a long sequence.
        """
        return self._empty(K, V, accumulation_dtype(dtype))

    def update(self, memory, q, k, v, block, *, bias=None, **learned):
        """Processes one block, given the sum over all tokens before it."""
        (state, peak), i = memory, block.positions
        met = None
        if self.feature.has_kernel:
            few_q, few_k, of = self.feature.kernel(q, k, **learned)
            met = of(matmul(few_q, few_k.T))
        q, k = self.feature.query(q, i, **learned), self.feature.key(k, i, **learned)
        visible = block.visibility
        if k.scale is not None:
            visible, peak = linear.relative_visibility(k.scale, peak, visible)
        parts = list(zip(self._rows(q), self._rows(k), self._values(v, k), strict=True))
        states = jnp.split(state, [v.shape[1]], axis=1) if len(parts) == 2 else [state]
        results = [
            linear.chunk(state, *part, **visible._asdict(), products=met)
            for state, part in zip(states, parts, strict=True)
        ]
        y, state = (jnp.concatenate(each, axis=1) for each in zip(*results, strict=True))
        return self._answer(y, v), (state, peak)

    def cost(self, T, S, K, V, block=None):
        """Counts the sum over keys that every query reads.

        A causal pass also counts the pairs within a block. If pairs take fewer operations, all pairs are counted
        instead.
        """
        M, W = self.feature.dim(K), V + self.normalise
        # A normalised rotated map multiplies a second set of features for the denominator. A kernel multiplies narrow
        # rows and then applies a function to each product.
        more = M if isinstance(self.feature, RotatedFeatures) and self.normalise else 0
        pair = 2 * W + (2 * K + 3 if self.feature.has_kernel else 2 * (M + more))
        sums = (T + S) * (M * 2 * W + self.feature.flops(K)) + (0 if block is None else T * block * pair)
        return Cost(
            flops=T * S * pair if self._few(T, S, K, V) else sums,
            bytes=moved(T, S, K, V),
            state_bytes=4 * (M * W + self.feature.scaled),
        )

    def _places(self, i, j):
        """Returns the positions as the feature map counts them, and checks them."""
        i, j = self.feature.aligned(i, j)
        self.feature.check(i)
        self.feature.check(j)
        return i, j

    def _met(self, q, k, i, j, learned) -> tuple[FeatureRows, FeatureRows, Callable[[Array], Array]]:
        """Returns rows of queries, rows of keys, and the function that maps their products to weights.

        Uses the map's kernel if it has one, otherwise features with the identity function.
        """
        i, j = self._places(i, j)
        if self.feature.has_kernel:
            q, k, of = self.feature.kernel(q, k, **learned)
            return FeatureRows(q), FeatureRows(k), of
        return self.feature.query(q, i, **learned), self.feature.key(k, j, **learned), lambda s: s

    def _few(self, T, S, K, V) -> bool:
        """Returns whether the map has a kernel and computing all pairs with it takes fewer operations than features."""
        W = V + self.normalise
        return self.feature.has_kernel and (T + S) * self.feature.dim(K) * W > T * S * (K + W)

    def _by_pairs(self, q, k, v, mask, i, j, learned):
        """Attends with the kernel over all pairs, for ROWS queries at a time."""
        q, k, of = self.feature.kernel(q, k, **learned)
        (values,) = self._values(v, FeatureRows(k))
        some = lambda q, i: matmul(jnp.where(dense_mask(mask, i, j), of(matmul(q, k.T)), 0), values)
        return self._answer(chunks.map_chunks(some, (q, i), ROWS), v)

    def _empty(self, K, V, dtype):
        """Returns the empty sum in `dtype`, and its scale or None."""
        state = jnp.zeros((self.feature.dim(K), V + self.normalise), dtype)
        return state, jnp.full((), linear.NO_SCALE, dtype) if self.feature.scaled else None

    def _rows(self, mapped: FeatureRows) -> list[Array]:
        """Returns the features to multiply: one set, or two if the denominator has its own."""
        return (
            [mapped.rows]
            if mapped.denominator_rows is None or not self.normalise
            else [mapped.rows, mapped.denominator_rows]
        )

    def _values(self, v: Array, k: FeatureRows) -> list[Array]:
        """Returns what each set of key features is multiplied with: the values, and ones that sum the weights."""
        v = v.astype(accumulation_dtype(v.dtype))
        if not self.normalise:
            return [v]
        return [linear.append_ones(v)] if k.denominator_rows is None else [v, jnp.ones_like(v[:, :1])]

    def _answer(self, y, v):
        """Returns the output in the dtype of v, divided by the sum of weights if normalised."""
        return (linear.normalise(y) if self.normalise else y).astype(v.dtype)
