"""Projections of inputs to heads, and functions of one head over all heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.inputs import shape_of, zero_where_padded
from attnlab.modules.causal_convolution import CausalConvolution
from attnlab.modules.dense import Dense, fold_key, fused_projection
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.norm import GroupedHeadNorm, RMSNorm
from attnlab.modules.observable import Observable
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position import PositionEncoding
from attnlab.ops.precision import accumulation_dtype

GATE = "output gate"  # name of the gate's projection; no extra input of a mechanism can have it
ACTIVATIONS = {"sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu}


class HeadProjections(Observable):
    """Projections of inputs to the queries, keys and values of all heads, and of the heads' outputs to one vector.

    The arguments and errors are those of `Attention`.
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        width: int,
        heads: int,
        mechanism: Mechanism,
        key_heads: int | None = None,
        dense: Callable[..., Dense] = Dense,
        layer: MultiHead = MultiHead(),
        norm_eps: float = 1e-6,
    ):
        shared = key_heads if layer.key_heads is None else layer.key_heads
        key_heads = heads if shared is None else shared
        layer.check(width, heads, key_heads)
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"expected a Mechanism, for example MECHANISMS['softmax'], got {mechanism!r}")
        # The role only matters for a convolution, which calls of any kind may have.
        if reason := layer.refusal(mechanism, "decoder"):
            raise ValueError(reason)
        self.width, self.mechanism, self.layer = width, mechanism, layer
        self.key_width, self.value_width = K, V = layer.widths(width, heads)
        # With value heads of their own, queries and keys are repeated: the mechanism has as many heads as values.
        self.heads, self.key_heads = layer.value_heads or heads, layer.value_heads or key_heads
        self.repeats = self.heads // heads
        named = lambda dense, name, *sizes: dense(fold_key(key, name), *sizes)
        qkv = dense if layer.qkv_bias is None else partial(dense, bias=layer.qkv_bias)
        self.q, self.k = named(qkv, "q", width, heads * K), named(qkv, "k", width, key_heads * K)
        self.v, self.o = named(qkv, "v", width, self.key_heads * V), named(dense, "o", self.heads * V, width)
        self.down = nnx.Dict()  # first maps of those that are products of two, by name

        def mapped(name: str, outputs: int, rank: int | None, bias: bool | None = None) -> Dense:
            last = dense if bias is None else partial(dense, bias=bias)
            if rank is None:
                return named(last, name, width, outputs)
            self.down[name] = dense(fold_key(key, f"{name} down"), width, rank, bias=False)
            return named(last, name, rank, outputs)

        def inputs(extra: Mapping[str, tuple], count: int) -> dict[str, Dense]:
            sizes = {name: math.prod(shape_of(shape, K, V)) for name, shape in extra.items()}
            ranks = {name: layer.extra_rank if size > 1 else None for name, size in sizes.items()}
            return {name: mapped(name, count * size, ranks[name], layer.extra_bias) for name, size in sizes.items()}

        self.tokens = nnx.Dict(inputs(mechanism.tokens, self.key_heads))
        self.queries = nnx.Dict(inputs(mechanism.queries, self.heads))
        self.learned = init_learned(mechanism, key, K, V, self.key_heads)
        gates = {"none": 0, "head": self.heads, "channel": self.heads * V}[layer.gate]
        self.gate = mapped(GATE, gates, layer.gate_rank) if gates else None
        norms = {"none": None, "head": (K, K), "all": (heads * K, key_heads * K)}[layer.qk_norm]
        self.q_norm, self.k_norm = (RMSNorm(each, norm_eps) for each in norms) if norms else (None, None)
        self.head_norm = {
            "none": lambda: None,
            "rms": lambda: RMSNorm(V, norm_eps),
            "group": lambda: GroupedHeadNorm(self.heads, V, norm_eps),
            "all": lambda: RMSNorm(self.heads * V, norm_eps),
        }[layer.head_norm]()
        channels = {"q": heads * K, "k": key_heads * K, "v": self.key_heads * V}
        convolved = sum(channels[name] for name in layer.convolved)
        convolution = partial(CausalConvolution, fold_key(key, "convolution"), convolved, bias=layer.convolution_bias)
        self.convolution = convolution(layer.convolution) if layer.convolution else None
        self.residual = NoDecay(jnp.full(2, 0.5)) if layer.value_residual else None
        self.skip = NoDecay(jnp.ones(self.heads)) if layer.skip else None

    def keys_values(self, context: Float[Array, "S D"], values: Float[Array, "S D"] | None = None) -> dict[str, Array]:
        """Project a context to keys, values and extra inputs, once for many calls of `cross`.

        Args:
            context: Inputs of the keys and, by default, of the values.
            values: Inputs of the values, if they differ from `context`.

        Returns:
            "k", "v" and the mechanism's extra inputs by name, each [S G ...] for G key heads.
        """
        self._fits("context", context)
        source = lambda name: values if name == "v" and values is not None else context
        projected = {name: each(source(name)) for name, each in self._key_maps.items()}
        return self._keys_by_head(self._up(projected))

    def values(self, x: Float[Array, "T D"]) -> Float[Array, "T F"]:
        """Return the projected values of x, before any convolution: what later layers add to theirs."""
        self._fits("x", x)
        return self.v(x)

    @property
    def _key_maps(self) -> dict[str, Dense]:
        return {"k": self.k, "v": self.v, **self.tokens} | {name: self.down[name] for name in self._low(self.tokens)}

    @property
    def _query_maps(self) -> dict[str, Dense]:
        gate = {} if self.gate is None else {GATE: self.gate}
        maps = {"q": self.q, **self.queries, **gate}
        return maps | {name: self.down[name] for name in self._low(maps)}

    def _low(self, names: Iterable[str]) -> list[str]:
        """Return which maps are products of two."""
        return [name for name in names if name in self.down]

    def _up(self, projected: dict[str, Array]) -> dict[str, Array]:
        """Apply the second maps of those that are products of two."""
        second = {**self.tokens, **self.queries, GATE: self.gate}
        return projected | {name: second[name](projected[name]) for name in self._low(projected)}

    def _own(
        self,
        projected: dict[str, Array],
        first: Float[Array, "T F"] | None,
        keep: Bool[Array, " T"] | None = None,
        before: Float[Array, "N C"] | None = None,
    ) -> tuple[dict[str, Array], dict[str, Array], Float[Array, "N C"] | None]:
        """Return the queries and the keys and values by head of one sequence, with residual and convolution.

        Args:
            projected: All projections by name, [T ...].
            first: Projected values of the first layer. Required with a value residual.
            keep: False marks padding. None means no padding.
            before: Rows of the convolution's inputs before the sequence. None: zeros.

        Returns:
            Queries, keys and values by name, and the last rows of the convolution's inputs.
        """
        if self.residual is not None:
            if first is None:
                raise ValueError("value_residual=True needs the values of the first layer, see `Attention.values`")
            if first.shape != (shape := projected["v"].shape):
                raise ValueError(f"first has shape {first.shape}, but the values of this layer have shape {shape}")
            own, other = self.residual[...].astype(first.dtype)
            projected = projected | {"v": own * projected["v"] + other * first}
        if self.convolution is not None:
            names = list(self.layer.convolved)
            rows = jnp.concatenate([projected[name] for name in names], axis=1)
            rows, before = self.convolution(rows if keep is None else zero_where_padded(keep, rows), before)
            ends = [sum(projected[name].shape[1] for name in names[:n]) for n in range(1, len(names))]
            projected = projected | dict(zip(names, jnp.split(rows, ends, axis=1), strict=True))
        return self._queries_by_head(projected), self._keys_by_head(projected), before

    def _fused(self, x: Float[Array, "T D"]) -> dict[str, Array]:
        """Return all projections of x by name, computed in one product."""
        self._fits("x", x)
        maps = self._query_maps | self._key_maps
        return self._up(dict(zip(maps, fused_projection(maps.values(), x), strict=True)))

    def _queries_of(self, x: Float[Array, "T D"]) -> dict[str, Array]:
        """Return the queries of x by head, with the mechanism's extra inputs per query and the gate."""
        return self._queries_by_head(self._up({name: dense(x) for name, dense in self._query_maps.items()}))

    def _queries_by_head(self, projected: dict[str, Array]) -> dict[str, Array]:
        """Split queries and extra inputs into heads, [T G ...] or [T G R ...], and normalise the queries."""
        q, K = projected["q"], self.key_width
        q = self._repeated(self._normed(q, self.q_norm))
        shapes = {name: shape_of(shape, K, self.value_width) for name, shape in self.mechanism.queries.items()}
        split = lambda x, shape: x.reshape(len(x), *self._head_axes, *shape)
        queries = {name: split(projected[name], shape) for name, shape in shapes.items()}
        return {"q": split(q, (K,))} | queries | {name: projected[name] for name in (GATE,) if name in projected}

    def _keys_by_head(self, projected: dict[str, Array]) -> dict[str, Array]:
        """Split keys, values and extra inputs into heads, [S G ...], and normalise the keys."""
        K, V = self.key_width, self.value_width
        shapes = {name: shape_of(shape, K, V) for name, shape in self.mechanism.tokens.items()}
        split = lambda x, shape: x.reshape(len(x), self.key_heads, *shape)
        k = split(self._repeated(self._normed(projected["k"], self.k_norm)), (K,))
        return {"k": k, "v": split(projected["v"], (V,))} | {
            name: split(projected[name], shape) for name, shape in shapes.items()
        }

    def _normed(self, x: Float[Array, "T F"], norm: RMSNorm | None) -> Float[Array, "T N K"]:
        """Split queries or keys into the heads that are projected, and normalise them if there is a norm."""
        by_head = lambda x: x.reshape(x.shape[0], x.shape[1] // self.key_width, self.key_width)
        if norm is None:
            return by_head(x)
        return by_head(norm(x)) if self.layer.qk_norm == "all" else norm(by_head(x))

    def _repeated(self, x: Float[Array, "T N K"]) -> Float[Array, "T H K"]:
        """Repeat each query or key for the value heads that it serves."""
        return x if self.repeats == 1 else jnp.repeat(x, self.repeats, axis=1)

    def _operands(
        self, queries: dict[str, Array], context: dict[str, Array], position: PositionEncoding, state: PyTree = None
    ) -> tuple:
        """Return the operands of `_over_heads`: every array with its axes of key heads, and of query heads if several.

        Args:
            queries: Queries and extra inputs per query, by head.
            context: Keys, values and extra inputs per key [S G ...].
            position: The position encoding.
            state: The state by key heads, or None.

        Raises:
            NotImplementedError: The mechanism does not support the position encoding.
        """
        self._check_position(position)
        bias = jax.tree.map(lambda leaf: leaf.reshape(*self._head_axes, *leaf.shape[1:]), position.bias(self.heads))
        queries = {name: x for name, x in queries.items() if name != GATE}
        return queries, context, extras(self.mechanism, self.learned, self.key_heads), bias, state

    def _check_position(self, position: PositionEncoding) -> None:
        """Raise NotImplementedError if the mechanism does not support the position encoding."""
        if reason := position.refusal(self.mechanism):
            raise NotImplementedError(f"{self.mechanism} does not support {position}: {reason}")

    def _over_heads(self, head: Callable, axes: PyTree = None, out: PyTree = 0) -> Callable:
        """Lift `head(queries, context, fixed, bias, state) -> (y, known)` over key heads and their query heads.

        Args:
            head: The function of one head.
            axes: vmap axes of the state over the query heads of one key head.
            out: vmap axes of `known` over the query heads of one key head.
        """
        if self.heads > self.key_heads:
            head = jax.vmap(head, in_axes=(1, None, None, 0, axes), out_axes=(1, out))
        return jax.vmap(head, in_axes=(1, 1, 0, 0, 0), out_axes=(1, 0))

    @property
    def _head_axes(self) -> tuple[int, ...]:
        """The sizes of the axes over heads: key heads, and the query heads of each if there are several."""
        several = self.heads > self.key_heads
        return (self.key_heads, self.heads // self.key_heads) if several else (self.key_heads,)

    def _project(self, y: Float[Array, "T ..."], queries: Mapping[str, Array]) -> Float[Array, "T D"]:
        """Normalise and gate the outputs of all heads, join them, and apply the output projection."""
        y = y.reshape(y.shape[0], self.heads, self.value_width)
        if self.layer.norm_after_gate:
            y = self._normed_heads(self._gated(y, queries))
        else:
            y = self._gated(self._normed_heads(y), queries)
        return self.o(y.reshape(y.shape[0], self.heads * self.value_width))

    def _normed_heads(self, y: Float[Array, "T H V"]) -> Float[Array, "T H V"]:
        if self.head_norm is None:
            return y
        if self.layer.head_norm == "all":
            return self.head_norm(y.reshape(y.shape[0], self.heads * self.value_width)).reshape(y.shape)
        return self.head_norm(y)

    def _gated(self, y: Float[Array, "T H V"], queries: Mapping[str, Array]) -> Float[Array, "T H V"]:
        if self.gate is None:
            return y
        gate = queries[GATE]
        factors = gate.reshape(*y.shape[:2], gate.shape[1] // self.heads)
        return y * ACTIVATIONS[self.layer.gate_activation](factors)

    def _with_own(self, y: Float[Array, "T ..."], v: Float[Array, "T G V"]) -> Float[Array, "T ..."]:
        """Exclude each token's own value from the outputs of all heads, or add it, as the layer asks."""
        dtype = accumulation_dtype(y.dtype)
        v = (v[:, :, None] if self.heads > self.key_heads else v).astype(dtype)
        own = jnp.zeros((), dtype)
        if self.layer.exclude_self:
            # Squares in float16 would overflow or vanish.
            length = jax.lax.rsqrt(jnp.maximum(jnp.sum(v * v, axis=-1, keepdims=True), 1e-24))
            own = own - jnp.sum(y.astype(dtype) * v, axis=-1, keepdims=True) * length * length
        if self.skip is not None:
            own = own + self.skip[...].astype(dtype).reshape(1, *self._head_axes, 1)
        return y if self.skip is None and not self.layer.exclude_self else y + (own * v).astype(y.dtype)

    def _join_maps(self, maps: PyTree) -> PyTree:
        """Merge the head axes of the maps into one: [H T S]."""
        return jax.tree.map(lambda each: each.reshape(self.heads, *each.shape[-2:]), maps)

    def _extras(self, queries: dict[str, Array], context: dict[str, Array]) -> dict[str, Array]:
        """Return the mechanism's extra inputs per key token and per query token."""
        tokens = {name: context[name] for name in self.mechanism.tokens}
        return tokens | {name: queries[name] for name in self.mechanism.queries}

    def _fits(self, name: str, x: Float[Array, "T D"]) -> None:
        if x.ndim != 2:
            raise ValueError(
                f"expected {name} [T {self.width}] of one example, got shape {x.shape}; "
                "for a batch, apply jax.vmap to the method that you call, for example jax.vmap(attention.attend)(x)"
            )
        if x.shape[1] != self.width:
            raise ValueError(f"{name} has width {x.shape[1]}, expected model.width={self.width}")
