"""Projections of inputs to heads, and functions of one head over all heads."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.inputs import shape_of
from attnlab.modules.dense import Dense, fold_key, fused_projection
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.observable import Observable
from attnlab.modules.position import PositionEncoding


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
    ):
        key_heads = heads if key_heads is None else key_heads
        check_heads(width, heads, key_heads)
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"expected a Mechanism, for example MECHANISMS['softmax'], got {mechanism!r}")
        self.width, self.heads, self.key_heads, self.mechanism = width, heads, key_heads, mechanism
        size = width // heads
        self.q, self.o = (dense(fold_key(key, name), width, width) for name in "qo")
        self.k, self.v = (dense(fold_key(key, name), width, key_heads * size) for name in "kv")
        self.tokens = nnx.Dict(
            {
                name: dense(fold_key(key, name), width, key_heads * math.prod(shape_of(shape, size, size)))
                for name, shape in mechanism.tokens.items()
            }
        )
        self.queries = nnx.Dict(
            {
                name: dense(fold_key(key, name), width, heads * math.prod(shape_of(shape, size, size)))
                for name, shape in mechanism.queries.items()
            }
        )
        self.learned = init_learned(mechanism, key, size, size, key_heads)

    def keys_values(self, memory: Float[Array, "S D"], values: Float[Array, "S D"] | None = None) -> dict[str, Array]:
        """Project a memory to keys, values and extra inputs, once for many calls of `cross`.

        Args:
            memory: Inputs of the keys and, by default, of the values.
            values: Inputs of the values, if they differ from `memory`.

        Returns:
            "k", "v" and the mechanism's extra inputs by name, each [S G ...] for G key heads.
        """
        self._fits("memory", memory)
        source = lambda name: values if name == "v" and values is not None else memory
        return self._remembered({name: each(source(name)) for name, each in self._maps().items()})

    def _maps(self) -> dict[str, Dense]:
        return {"k": self.k, "v": self.v, **self.tokens}

    def _remembered(self, projected: dict[str, Array]) -> dict[str, Array]:
        size = self.width // self.heads
        shapes = {"k": (size,), "v": (size,)} | {
            name: shape_of(shape, size, size) for name, shape in self.mechanism.tokens.items()
        }
        return {
            name: projected[name].reshape(len(projected[name]), self.key_heads, *shape)
            for name, shape in shapes.items()
        }

    def _both(self, x: Float[Array, "T D"]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the queries of x and its `keys_values`, computed in one product."""
        self._fits("x", x)
        maps = {"q": self.q, **self.queries, **self._maps()}
        projected = dict(zip(maps, fused_projection(maps.values(), x), strict=True))
        return {name: projected.pop(name) for name in ("q", *self.queries)}, self._remembered(projected)

    def _queries(self, x: Float[Array, "T D"]) -> dict[str, Array]:
        """Return the queries of x and the mechanism's extra inputs per query."""
        return {"q": self.q(x)} | {name: dense(x) for name, dense in self.queries.items()}

    def _operands(self, q: dict[str, Array], memory: dict[str, Array], position: PositionEncoding, state=None) -> tuple:
        """Return the operands of `_over_heads`: every array with its axes of key heads, and of query heads if several.

        Args:
            q: Projected queries [T D] and extra inputs per query, by name.
            memory: Keys, values and extra inputs per key [S G ...].
            position: The position encoding.
            state: The state by key heads, or None.

        Raises:
            NotImplementedError: The mechanism does not support the position encoding.
        """
        if reason := position.refusal(self.mechanism):
            raise NotImplementedError(f"{self.mechanism} does not support {position}: {reason}")
        shape, size = self._head_axes, self.width // self.heads
        shapes = {"q": (size,)} | {name: shape_of(x, size, size) for name, x in self.mechanism.queries.items()}
        queries = {name: q[name].reshape(len(q[name]), *shape, *each) for name, each in shapes.items()}
        bias = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), position.bias(self.heads))
        return queries, memory, extras(self.mechanism, self.learned, self.key_heads), bias, state

    def _over_heads(self, head: Callable, axes: PyTree = None, out: PyTree = 0) -> Callable:
        """Lift `head(queries, memory, fixed, bias, state) -> (y, known)` over key heads and their query heads.

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

    def _project(self, y: Float[Array, "T ..."]) -> Float[Array, "T D"]:
        """Join the outputs of all heads and apply the output projection."""
        return self.o(y.reshape(y.shape[0], self.width))

    def _join_maps(self, maps: PyTree) -> PyTree:
        """Merge the head axes of the maps into one: [H T S]."""
        return jax.tree.map(lambda each: each.reshape(self.heads, *each.shape[-2:]), maps)

    def _extras(self, queries: dict[str, Array], memory: dict[str, Array]) -> dict[str, Array]:
        """Return the mechanism's extra inputs per key token and per query token."""
        tokens = {name: memory[name] for name in self.mechanism.tokens}
        return tokens | {name: queries[name] for name in self.mechanism.queries}

    def _fits(self, name: str, x: Float[Array, "T D"]) -> None:
        if x.ndim != 2:
            raise ValueError(
                f"expected {name} [T {self.width}] of one example, got shape {x.shape}; "
                "for a batch, use jax.vmap, for example jax.vmap(attention.attend)(x)"
            )
        if x.shape[1] != self.width:
            raise ValueError(f"{name} has width {x.shape[1]}, expected model.width={self.width}")


def check_heads(width: int, heads: int, key_heads: int) -> None:
    """Raise ValueError if a number is below 1, `heads` does not divide `width`, or `key_heads` not `heads`."""
    for name, value in {"width": width, "heads": heads, "key_heads": key_heads}.items():
        if value < 1:
            raise ValueError(f"model.{name}={value} must be at least 1")
    if width % heads:
        raise ValueError(f"model.heads={heads} must divide model.width={width}")
    if heads % key_heads:
        raise ValueError(f"model.key_heads={key_heads} must divide model.heads={heads}")
