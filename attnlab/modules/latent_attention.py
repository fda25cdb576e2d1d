"""Multi-head latent attention: keys and values from one small vector, which is all that decoding caches."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cache import Cache
from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.modules.attention import NO_POSITION, Attention
from attnlab.modules.attention_state import AttentionState
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.latent import Latent
from attnlab.modules.learned import extras
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.norm import RMSNorm
from attnlab.modules.position import PositionEncoding
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.precision import weighted_sum
from attnlab.ops.score import scaled_dot


class LatentAttention(Attention):
    """Multi-head latent attention (DeepSeek-AI 2024, section 2.1), for one example.

    `attend`, `cross` and `causal` compute keys and values. `start` and `extend` keep the small vectors only.

    Args:
        key: Key for the initial parameters.
        width: Size D of the vectors.
        heads: Number of heads.
        mechanism: The attention mechanism: softmax, over all keys or a pattern of them.
        layer: The sizes.
        dense: Constructor of the linear maps, called as `dense(key, inputs, outputs)`.
        norm_eps: The ε of the norms.

    Raises:
        ValueError: The sizes do not fit, or the mechanism does not support this layer.
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        width: int,
        heads: int,
        mechanism: Mechanism,
        layer: Latent = Latent(),
        dense: Callable[..., Dense] = Dense,
        norm_eps: float = 1e-6,
    ):
        layer.check(width, heads, heads)
        if reason := layer.refusal(mechanism, "decoder"):
            raise ValueError(reason)
        K, V = layer.widths(width, heads)
        super().__init__(key, width, heads, mechanism, None, dense, MultiHead(head_width=K, value_width=V))
        named = lambda name, *sizes, **fields: dense(fold_key(key, name), *sizes, **fields)
        own, shared = layer.split(width, heads)
        self.own_width, self.rotary_width, self.rank = own, shared, layer.rank
        # Without biases: decoding applies these maps to queries and outputs instead of to keys and values.
        self.k = named("k", layer.rank, heads * own, bias=False)
        self.v = named("v", layer.rank, heads * V, bias=False)
        self.latent, self.latent_norm = named("latent", width, layer.rank), RMSNorm(layer.rank, norm_eps)
        self.shared = named("shared", width, shared) if shared else None
        low = layer.query_rank
        self.q_down, self.q_down_norm = (named("q down", width, low), RMSNorm(low, norm_eps)) if low else (None, None)
        self.q = named("q", low, heads * K) if low else self.q

    @property
    def _key_maps(self) -> dict[str, Dense]:
        return {"latent": self.latent} | ({} if self.shared is None else {"shared": self.shared})

    @property
    def _query_maps(self) -> dict[str, Dense]:
        return {"q": self.q if self.q_down is None else self.q_down}

    def _up(self, projected: dict[str, Array]) -> dict[str, Array]:
        """Compute queries, keys and values from the small vectors."""
        found = {}
        if "q" in projected:
            q = projected["q"]
            found["q"] = q if self.q_down_norm is None else self.q(self.q_down_norm(q))
        if "latent" in projected:
            latent = self.latent_norm(projected["latent"])
            k = self.k(latent).reshape(len(latent), self.heads, self.own_width)
            if self.shared is not None:
                shared = projected["shared"][:, None, :]
                k = jnp.concatenate([k, jnp.broadcast_to(shared, (*k.shape[:2], self.rotary_width))], axis=2)
            found |= {"k": k.reshape(len(latent), self.heads * self.key_width), "v": self.v(latent)}
        return found

    def keys_values(self, context: Float[Array, "S D"], values: Float[Array, "S D"] | None = None) -> dict[str, Array]:
        """Project a context to keys and values, as `Attention.keys_values` does.

        Raises:
            NotImplementedError: The values have other inputs than the keys.
        """
        if values is not None:
            raise NotImplementedError("latent attention computes keys and values from one vector, so from one input")
        return super().keys_values(context)

    def values(self, x: Float[Array, "T D"]) -> Float[Array, "T F"]:
        """Return the values of x: what later layers with a value residual add to theirs."""
        self._fits("x", x)
        return self.v(self.latent_norm(self.latent(x)))

    def start(self, length: int, dtype) -> AttentionState:
        """Create the state before the first token: a cache of `rank` + `rotary_width` numbers per token."""
        return AttentionState(self.mechanism.start(length, self.rank + self.rotary_width, 0, dtype), None)

    def extend(
        self,
        x: Float[Array, "T D"],
        state: AttentionState,
        i: Int[ArrayOrNumpy, " T"],
        position: PositionEncoding = NO_POSITION,
        first: Float[Array, "T F"] | None = None,
    ) -> tuple[Float[Array, "T D"], AttentionState]:
        """Attend causally from new tokens, given the state of earlier ones, without computing keys or values.

        With q·(c W_k) = (q W_kᵀ)·c, the cached vectors are the keys of all heads, and with Σ a_j (c_j W_v) =
        (Σ a_j c_j) W_v also the values. Arguments and errors are those of `Attention.extend`.
        """
        self._fits("x", x)
        self._check_position(position)
        mechanism = self.mechanism
        assert isinstance(mechanism, PatternSoftmax)  # ensured by `refusal`
        queries = self._queries_of(x)["q"]
        own, q = queries[..., : self.own_width], queries[..., self.own_width :]
        latent = self.latent_norm(self.latent(x))
        shared = latent[:, :0] if self.shared is None else self.shared(x)
        if self.shared is not None and position.rotary:
            rotate = jax.vmap(lambda q: position.rotate(q, shared, i, i), in_axes=1, out_axes=(1, None))
            q, shared = rotate(q)
        maps = lambda dense, size: dense.w[...].astype(x.dtype).reshape(self.rank, self.heads, size)
        own = jnp.einsum("thn,rhn->thr", own, maps(self.k, self.own_width))
        # The scaled dot product divides by the square root of the width of what it is given.
        factor = math.sqrt((self.rank + self.rotary_width) / self.key_width) if mechanism.score is scaled_dot else 1.0
        q = jnp.concatenate([own, q], axis=2) * factor
        k, fixed = jnp.concatenate([latent, shared], axis=1), extras(mechanism, self.learned, self.heads)
        none = jnp.zeros((len(x), 0), x.dtype)
        _, new = mechanism.extend(state.heads, q[:, 0], k, none, i=i, **{name: one[0] for name, one in fixed.items()})
        cache = new.memory
        assert isinstance(cache, Cache)
        slot = cache.count - len(x) + jnp.arange(len(x), dtype=jnp.int32)
        order = jnp.arange(cache.k.shape[0], dtype=jnp.int32)
        allowed = order[None, :] <= slot[:, None]

        def head(q, fixed, bias):
            weights = self._pairs(mechanism, q, cache.k, allowed, i=i, j=cache.i, bias=bias, **fixed)
            return weighted_sum(weights, cache.k[:, : self.rank].astype(x.dtype))

        y = jax.vmap(head, in_axes=(1, 0, 0), out_axes=1)(q, fixed, position.bias(self.heads))
        y = jnp.einsum("thr,rhv->thv", y, maps(self.v, self.value_width))
        # A token that does not fit into the cache cannot raise inside a trace. Its output becomes NaN instead.
        y = jnp.where((slot < cache.k.shape[0])[:, None, None], y, jnp.nan)
        return self._project(y, {}), AttentionState(new, None)

    def _check_position(self, position: PositionEncoding) -> None:
        """Raise NotImplementedError, also for vectors that are added to keys and values."""
        super()._check_position(position)
        if position.has_values:
            raise NotImplementedError(
                f"latent attention does not support {position}: decoding computes no keys or values to add vectors to"
            )

    def _turned(self, position: PositionEncoding) -> tuple[Mechanism, Callable]:
        """Return the mechanism and the function that rotates the shared components of q and k."""
        if self.shared is None or not position.rotary:
            return self.mechanism, NO_POSITION.rotate

        def turn(q, k, i, j):
            parts = (q[:, self.own_width :], k[:, self.own_width :])
            turned = position.rotate(*parts, i, j)
            return tuple(
                jnp.concatenate([x[:, : self.own_width], part], axis=1) for x, part in zip((q, k), turned, strict=True)
            )

        return self.mechanism, turn
