"""Multi-head attention: projections around any mechanism."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cache import caches
from attnlab.mechanisms.causal import causal
from attnlab.mechanisms.inputs import zero_where_padded
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.query_heads import query_head_axes
from attnlab.modules.attention_state import AttentionState
from attnlab.modules.dense import fold_key
from attnlab.modules.head_projections import HeadProjections
from attnlab.modules.position import Position, PositionEncoding
from attnlab.ops.layer import dropout
from attnlab.ops.mask import ArrayOrNumpy, Causal, Full, KeyPadding, Mask, QueryPadding
from attnlab.ops.precision import weighted_sum

NO_POSITION = Position()


class Attention(HeadProjections):
    """Multi-head attention with any mechanism, for one example (Vaswani et al. 2017, section 3.2).

    q = x W_q, k = m W_k, v = m W_v for input x [T D] and context m [S D], split into heads. The mechanism mixes the
    values of each head, and y = [heads] W_o. The context is what is attended to: x itself, or for cross-attention
    another sequence, such as the output of an encoder.

    There are three ways to call it:

    - `attend`: attends to a context, or to x itself, under a mask. `cross` does so with projected keys and values.
    - `causal`: attends causally over a sequence from its beginning.
    - `extend`: attends causally from new tokens, given the state of earlier ones.

    Each returns y and a second value. That is the new state for `extend`, and the attention map for the others, or
    None if the module has no observer. Each takes the network's position encoding, which the layers share.

    Args:
        key: Key for the initial parameters.
        width: Size D of the vectors.
        heads: Number of query heads; must divide `width`, unless `layer` gives heads a width of their own.
        mechanism: The attention mechanism.
        key_heads: Number of key and value heads; must divide `heads`. Each serves the same number of query heads
            (Ainslie et al. 2023; one key head: Shazeer 2019), and a state is stored once per key head. Default:
            `heads`.
        dense: Constructor of the linear maps, called as `dense(key, inputs, outputs)`.
        layer: The attention layer that contains the mechanism: gate, norms, head widths and more.
        norm_eps: The ε of the norms of heads.

    Raises:
        ValueError: `heads` does not divide `width`, `key_heads` does not divide `heads`, `layer` does not fit them or
            the mechanism, or an input has another width.
        TypeError: `mechanism` is not a `Mechanism`.
        NotImplementedError: The mechanism does not support the position encoding. Raised by the calls.
    """

    def attend(
        self,
        x: Float[Array, "T D"],
        context: Float[Array, "S E"] | None = None,
        mask: Mask = Full(),
        position: PositionEncoding = NO_POSITION,
        i: Int[ArrayOrNumpy, " T"] | None = None,
        j: Int[ArrayOrNumpy, " S"] | None = None,
        first: Float[Array, "T F"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "T D"], Array | None]:
        """Attend from x to a context.

        Args:
            x: Inputs of the queries.
            context: Inputs of keys and values. None: x itself, with the convolution, value residual, exclusion and
                addition of the own value that `layer` asks for.
            mask: Which query may attend to which key, by position.
            position: The position encoding.
            i: Positions of the queries. Default: S−T…S−1, as for a mechanism. Give 0…T−1 for another sequence.
            j: Positions of the keys. Default: 0…S−1.
            first: Projected values of the first layer, for a value residual.
            key: Key for dropout of attention weights. None means no dropout.

        Returns:
            y [T D], and the attention map [H T S], or None if the module has no observer.
        """
        if context is not None:
            return self.cross(x, self.keys_values(context), mask, position, i, j, key)
        queries, own, _ = self._own(self._fused(x), first)
        return self._reading(queries, own, mask, position, i, j, key, own=True)

    def cross(
        self,
        x: Float[Array, "T D"],
        context: dict[str, Array],
        mask: Mask = Full(),
        position: PositionEncoding = NO_POSITION,
        i: Int[ArrayOrNumpy, " T"] | None = None,
        j: Int[ArrayOrNumpy, " S"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "T D"], Array | None]:
        """Attend from x to keys and values that `keys_values` has projected.

        Args:
            x: Inputs of the queries.
            context: The result of `keys_values`.
            mask: Which query may attend to which key, by position.
            position: The position encoding.
            i: Positions of the queries. Default: S−T…S−1, as for a mechanism. Give 0…T−1 for another sequence.
            j: Positions of the keys. Default: 0…S−1.
            key: Key for dropout of attention weights. None means no dropout.

        Returns:
            y [T D], and the attention map [H T S], or None if the module has no observer.
        """
        self._fits("x", x)
        return self._reading(self._queries_of(x), context, mask, position, i, j, key)

    def _reading(self, queries, context, mask, position, i=None, j=None, key=None, own=False):
        T, S = queries["q"].shape[0], context["k"].shape[0]
        places = {name: at for name, at in {"i": i, "j": j}.items() if at is not None}
        i = np.arange(S - T, S, dtype=np.int32) if i is None else i
        j = np.arange(S, dtype=np.int32) if j is None else j

        mechanism, turn = self._turned(position)

        def head(queries, context, fixed, bias, key):
            q, k = turn(queries["q"], context["k"], i, j)
            v, extra = context["v"], {"bias": bias, **self._extras(queries, context), **fixed}
            pairs = lambda: jnp.asarray(mask(i, j))
            if key is not None:
                y = self._dropped(mechanism, q, k, v, pairs(), key, position.has_values, i=i, j=j, **extra)
            else:
                y = mechanism.attend(q, k, v, mask, **places, **extra)
                if position.has_values:
                    y = y + self._joining(q, k, pairs(), i=i, j=j, **extra).astype(y.dtype)
            return y, self.observed(mechanism, q, k, mask, **places, **extra)

        operands = self._operands(queries, context, position, self._dropout_keys(key))
        y, maps = self._over_heads(head, 0)(*operands)
        y = self._with_own(y, context["v"]) if own else y
        return self._project(y, queries), self._join_maps(maps)

    def causal(
        self,
        x: Float[Array, "T D"],
        keep: Bool[Array, " T"] | None = None,
        position: PositionEncoding = NO_POSITION,
        first: Float[Array, "T F"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "T D"], Array | None]:
        """Attend causally over a sequence from its beginning.

        Rotary positions of q and k count rows, so padding inside a sequence takes up a position. The mechanism's own
        count skips padding. That count rotates features and selects the vectors that join the values (`Shaw`, for
        which the weights of all pairs are computed).

        Args:
            x: The sequence.
            keep: False marks padding, after the whole sequence or before it. None means no padding.
            position: The position encoding.
            first: Projected values of the first layer, for a value residual.
            key: Key for dropout of attention weights. None means no dropout.

        Returns:
            y [T D], and the attention map [H T T], or None if the module has no observer.
        """
        i = np.arange(x.shape[0], dtype=np.int32)
        at = i if keep is None else jnp.maximum(jnp.cumsum(keep, dtype=jnp.int32) - 1, 0)

        mechanism, turn = self._turned(position)

        def head(queries, context, fixed, bias, key):
            q, k = turn(queries["q"], context["k"], i, i)
            v, extra = context["v"], {"bias": bias, **self._extras(queries, context), **fixed}
            mask = Causal() if keep is None else Causal() & KeyPadding(keep) & QueryPadding(keep)
            pairs = lambda: jnp.asarray(mask(i, i))
            if key is not None:
                y = self._dropped(mechanism, q, k, v, pairs(), key, position.has_values, i=at, j=at, **extra)
            else:
                y = causal(mechanism, q, k, v, keep=keep, **extra)
                if position.has_values:
                    y = y + self._joining(q, k, pairs(), i=at, j=at, **extra).astype(y.dtype)
            return y, self.observed(mechanism, q, k, Causal(), keep=keep, **extra)

        queries, context, _ = self._own(self._fused(x), first, keep)
        operands = self._operands(queries, context, position, self._dropout_keys(key))
        y, maps = self._over_heads(head, 0)(*operands)
        return self._project(self._with_own(y, context["v"]), queries), self._join_maps(maps)

    def start(self, length: int, dtype) -> AttentionState:
        """Create the state before the first token.

        Args:
            length: Number of tokens that the state must have room for.
            dtype: Data type of keys and values.

        Returns:
            The state. In the mechanism's, what differs by query head has a second axis, of the query heads of one key
            head, if there are several.
        """
        one = lambda: self.mechanism.start(length, self.key_width, self.value_width, dtype)
        if self.heads > self.key_heads:
            axes = query_head_axes(jax.eval_shape(one))
            one = jax.vmap(one, axis_size=self.heads // self.key_heads, out_axes=axes)
        rows = None if self.convolution is None else self.convolution.start(dtype)
        return AttentionState(jax.vmap(one, axis_size=self.key_heads)(), rows)

    def extend(
        self,
        x: Float[Array, "T D"],
        state: AttentionState,
        i: Int[ArrayOrNumpy, " T"],
        position: PositionEncoding = NO_POSITION,
        first: Float[Array, "T F"] | None = None,
    ) -> tuple[Float[Array, "T D"], AttentionState]:
        """Attend causally from new tokens, given the state of earlier ones.

        Args:
            x: The new tokens.
            state: The state that `start` or the last call of `extend` returned.
            i: Positions of the new tokens.
            position: The position encoding.
            first: Projected values of the first layer, for a value residual.

        Returns:
            y [T D], and the new state.

        Raises:
            ValueError: A cache has no room for the tokens, and its count is not traced.
        """
        mechanism, turn = self._turned(position)

        def head(queries, context, fixed, bias, state):
            q, k = turn(queries["q"], context["k"], i, i)
            extra = {"bias": bias, **fixed} | {name: queries[name] for name in mechanism.queries}
            tokens = {name: context[name] for name in mechanism.tokens}
            y, state = mechanism.extend(state, q, k, context["v"], i=i, **tokens, **extra)
            if position.has_values:
                cache = state.memory
                order = jnp.arange(cache.k.shape[0], dtype=jnp.int32)
                slot = cache.count - x.shape[0] + jnp.arange(x.shape[0], dtype=jnp.int32)
                allowed = order[None, :] <= slot[:, None]
                y = y + self._joining(q, cache.k, allowed, i=i, j=cache.i, **cache.tokens, **extra).astype(y.dtype)
            return y, state

        axes = query_head_axes(state.heads)
        self._fits("x", x)
        # Check here: under the vmap over heads below, counts are traced and no longer known.
        for cache in caches(state.heads):
            cache.check(x.shape[0])
        # Not `_fused`: for one token, concatenating the weights costs as much as the products themselves.
        projected = self._up({name: dense(x) for name, dense in (self._query_maps | self._key_maps).items()})
        queries, context, rows = self._own(projected, first, before=state.rows)
        operands = self._operands(queries, context, position, state.heads)
        y, heads = self._over_heads(head, axes, axes)(*operands)
        return self._project(self._with_own(y, context["v"]), queries), AttentionState(heads, rows)

    def _turned(self, position: PositionEncoding) -> tuple[Mechanism, Callable]:
        """Return the mechanism and the function that rotates q and k, which does nothing if features are rotated."""
        if position.rotary and not self.mechanism.traits.rotary:
            return self.mechanism.with_rotary(position) or self.mechanism, NO_POSITION.rotate
        return self.mechanism, position.rotate

    def _dropout_keys(self, key: PRNGKeyArray | None) -> Array | None:
        """Return keys with the axes of heads for dropout of attention weights, or None if there is no dropout."""
        if key is None or self.layer.dropout == 0:
            return None
        return jax.random.split(fold_key(key, "weights"), self._head_axes)

    def _dropped(self, mechanism, q, k, v, allowed, key, has_values, *, i, j, bias, **extra) -> Float[Array, "T V"]:
        """Return the output of one head with dropout of attention weights, from the weights of all pairs."""
        weights = self._pairs(mechanism, q, k, allowed, i=i, j=j, bias=bias, **extra)
        weights = dropout(weights, self.layer.dropout, key)
        y = weighted_sum(weights, zero_where_padded(allowed.any(axis=0), v))
        return y + bias.weighted_values(weights, i, j).astype(y.dtype) if has_values else y

    def _joining(self, q, k, allowed: Bool[Array, "T S"], *, i, j, bias, **extra) -> Float[Array, "T V"]:
        """Return Σ_j a_tj r_tj, the term that a `has_values` position adds to the output of one head."""
        weights = self._pairs(self.mechanism, q, k, allowed, i=i, j=j, bias=bias, **extra)
        return bias.weighted_values(weights, i, j)

    def _pairs(self, mechanism: Mechanism, q, k, allowed: Bool[Array, "T S"], *, i, j, **extra) -> Float[Array, "T S"]:
        """Return the attention weights of all pairs of one head.

        Keys that no query sees are set to zero first, so that they reach neither the result nor a gradient.
        """
        sees, seen = allowed.any(axis=1), allowed.any(axis=0)
        extra |= {name: zero_where_padded(seen, extra[name]) for name in mechanism.tokens}
        extra |= {name: zero_where_padded(sees, extra[name]) for name in mechanism.queries}
        q, k = zero_where_padded(sees, q), zero_where_padded(seen, k)
        assert isinstance(mechanism, Pairwise)  # ensured by `refusal`
        return mechanism.weights(q, k, allowed, i=i, j=j, **extra)
