"""Recurrent layers, and the attention of recurrent states to a memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.inputs import shape_of, zero_where_padded
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.softmax import Softmax
from attnlab.modules.attention import check_heads
from attnlab.modules.dense import INITIALISERS, Dense, fold_key
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.observable import Observable
from attnlab.modules.parameter import NoDecay
from attnlab.ops.cell import CELLS
from attnlab.ops.counts import check_counts
from attnlab.ops.dense import flat_matmul
from attnlab.ops.layer import dropout
from attnlab.ops.mask import Full, KeyPadding, Mask, Places
from attnlab.ops.precision import accumulation_dtype, matmul, weighted_sum
from attnlab.ops.score import additive, concat, hidden_scores


class RecurrentDirection(nnx.Module):
    """One recurrent layer in one direction: a cell and its parameters.

    The input weights W are initialised uniformly (Glorot and Bengio 2010) and the recurrent weights U as orthogonal
    matrices (Saxe et al. 2014), each gate separately. Biases are initialised to zero, the bias of a forget gate to one.

    Args:
        key: Key for the initial parameters.
        cell: Name of the cell in `attnlab.ops.cell.CELLS`.
        inputs: Size of the inputs.
        width: Size H of the state.
    """

    def __init__(self, key: PRNGKeyArray, cell: str, inputs: int, width: int):
        self.cell, self.width = CELLS[cell], width
        self.w = nnx.Param(_by_gates(INITIALISERS["xavier"], fold_key(key, "w"), inputs, width, self.cell.gates))
        self.u = nnx.Param(
            _by_gates(jax.nn.initializers.orthogonal(), fold_key(key, "u"), width, width, self.cell.gates)
        )
        bias = np.zeros((self.cell.gates, width), np.float32)
        if self.cell.remembers is not None:
            bias[self.cell.remembers] = 1
        self.b = NoDecay(jnp.asarray(bias.reshape(-1)))
        self.inner = NoDecay(jnp.zeros(width)) if self.cell.inner else None

    def gates(self, x: Float[Array, "T D"]) -> Float[Array, "T G"]:
        """Return the input's contribution to the gates, bias included, for a whole sequence at once.

        If x is narrower than the cell's input, it counts as the first columns of that input. `share` adds the rest.
        """
        return self.share(x) + self.b[...].astype(x.dtype)[None, :]

    def share(self, x: Float[Array, "T D"], at: int = 0) -> Float[Array, "T G"]:
        """Return the contribution of some input columns to the gates, without the bias.

        Args:
            x: The input columns.
            at: Index of the first of these columns in the cell's input.

        Raises:
            ValueError: The columns extend beyond the cell's input.
        """
        if at + x.shape[1] > self.w.shape[0]:
            raise ValueError(
                f"x has width {x.shape[1]} and starts at column {at}, but the cell has {self.w.shape[0]} input columns"
            )
        return flat_matmul(x, self.w[at : at + x.shape[1]].astype(x.dtype))

    def start(self, dtype) -> Any:
        """Return the zero state for inputs of `dtype`. It is at least float32."""
        return tuple(jnp.zeros(self.width, accumulation_dtype(dtype)) for _ in range(self.cell.states))

    def step(self, gates: Float[Array, " G"], state: Any) -> Any:
        """Return the next state."""
        return self.cell.step(gates, state, **self._learned(gates.dtype))

    def run(self, gates: Float[Array, "T G"], keep: Bool[Array, " T"] | None, state: Any, reverse: bool = False) -> Any:
        """Run the cell over a sequence.

        Padding does not change the state, and its outputs are zero.

        Args:
            gates: The result of `gates`.
            keep: False marks padding. None means no padding.
            state: The initial state.
            reverse: Whether to run from the last token to the first.

        Returns:
            The outputs [T H] and the final state.
        """
        learned = self._learned(gates.dtype)

        def advance(state, inputs):
            gates, kept = inputs
            new = self.cell.step(gates, state, **learned)
            state = new if keep is None else jax.tree.map(lambda new, old: jnp.where(kept, new, old), new, state)
            return state, state[0].astype(gates.dtype)

        state, y = jax.lax.scan(advance, state, (gates, keep), reverse=reverse)
        return zero_where_padded(keep, y), state

    def _learned(self, dtype) -> dict[str, Array]:
        inner = {} if self.inner is None else {"b": self.inner[...]}
        return {"u": self.u[...].astype(dtype)} | inner


class RecurrentLayer(nnx.Module):
    """A stack of recurrent layers, unidirectional or bidirectional (Schuster and Paliwal 1997), for one example.

    It maps x [T D] to outputs [T H], or [T 2H] if it is bidirectional. A bidirectional layer concatenates the outputs
    of its two directions, forward first, and the next layer reads both.

    The state is a tuple with one entry per layer, which is the state tuple of the cell. A bidirectional layer
    concatenates the states of its directions in the same order. States are at least float32. Outputs have the dtype of
    x.

    Padding may be at any position. It changes no state, no other output and no gradient, and its own outputs are zero.
    The backward direction therefore starts at the last token that is not padding.

    Args:
        key: Key for the initial parameters.
        cell: Name of the cell in `attnlab.ops.cell.CELLS`.
        inputs: Size D of the inputs.
        width: Size H of the state of a direction.
        layers: Number of layers.
        bidirectional: Whether each layer also runs backwards.
        rate: Dropout probability between layers, not between time steps (Zaremba et al. 2014).

    Raises:
        ValueError: The cell is unknown, or `width` or `layers` is below 1.
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        cell: str,
        inputs: int,
        width: int,
        layers: int = 1,
        bidirectional: bool = False,
        rate: float = 0.0,
    ):
        if cell not in CELLS:
            raise ValueError(f"{cell=} must be one of {', '.join(CELLS)}")
        check_counts(width=width, layers=layers)
        names = ("forward", "backward") if bidirectional else ("forward",)
        self.width, self.rate, self.outputs = width, rate, width * len(names)
        self.layers = nnx.List(
            nnx.List(
                RecurrentDirection(fold_key(key, f"{name} {n}"), cell, self.outputs if n else inputs, width)
                for name in names
            )
            for n in range(layers)
        )

    def __call__(
        self, x: Float[Array, "T D"], keep: Bool[Array, " T"] | None, key: PRNGKeyArray | None = None, start: Any = None
    ) -> tuple[Float[Array, "T H"], Any]:
        """Run all layers over a sequence.

        Args:
            x: The inputs.
            keep: False marks padding. None means no padding.
            key: Key for dropout. None means no dropout.
            start: The initial state. None means zeros.

        Returns:
            The outputs of the last layer, and the final state.
        """
        return self.run(self.gates(x, keep), keep, key, self.start(x.dtype) if start is None else start)

    def gates(self, x: Float[Array, "T D"], keep: Bool[Array, " T"] | None) -> tuple[Float[Array, "T G"], ...]:
        """Return the input's contribution to the first layer's gates, bias included, for each direction."""
        # Padding is zeroed before the product, because 0·NaN in a backward pass is NaN.
        return tuple(direction.gates(zero_where_padded(keep, x)) for direction in self.layers[0])

    def share(self, x: Float[Array, "T D"], at: int) -> tuple[Float[Array, "T G"], ...]:
        """Return what input columns from index `at` on add to the result of `gates`, for each direction."""
        return tuple(direction.share(x, at) for direction in self.layers[0])

    def run(
        self, gates: Any, keep: Bool[Array, " T"] | None, key: PRNGKeyArray | None, start: Any
    ) -> tuple[Array, Any]:
        """Run all layers, given the first layer's `gates`. Otherwise like a call, but `start` is required."""
        keys = [None] * len(self.layers) if key is None else jax.random.split(key, len(self.layers))
        y, last = jnp.zeros(()), []
        for n, (directions, begin) in enumerate(zip(self.layers, start, strict=True)):
            if n:
                y = dropout(y, self.rate, keys[n])
                gates = tuple(direction.gates(y) for direction in directions)
            begins = zip(*(jnp.split(part, len(directions)) for part in begin), strict=True)
            # The second direction, if there is one, runs in reverse.
            inputs = zip(directions, gates, begins, strict=True)
            runs = [each.run(x, keep, state, bool(back)) for back, (each, x, state) in enumerate(inputs)]
            y = jnp.concatenate([outputs for outputs, _ in runs], axis=1)
            last.append(tuple(map(jnp.concatenate, zip(*(state for _, state in runs), strict=True))))
        return y, tuple(last)

    def start(self, dtype) -> Any:
        """Return the zero state for inputs of `dtype`. It is at least float32."""
        join = lambda states: tuple(map(jnp.concatenate, zip(*states, strict=True)))
        return tuple(join([direction.start(dtype) for direction in directions]) for directions in self.layers)

    def masks(self, T: int, dtype, key: PRNGKeyArray | None) -> Float[Array, "T L H"] | None:
        """Draw the dropout between layers for T steps at once.

        Returns:
            Factors [T, layers − 1, H], one slice for each call of `step`, or None if nothing is dropped.
        """
        if key is None or self.rate == 0 or len(self.layers) == 1:
            return None
        return dropout(jnp.ones((T, len(self.layers) - 1, self.outputs), dtype), self.rate, key)

    def step(
        self, gates: Float[Array, " G"], state: Any, masks: Float[Array, "L H"] | None = None
    ) -> tuple[Array, Any]:
        """Process one token.

        Args:
            gates: The token's contribution to the first layer's gates.
            state: The state before the token.
            masks: The token's slice of `masks`. None means no dropout.

        Returns:
            The output of the last layer [H] and the new state.

        Raises:
            ValueError: The layers are bidirectional.
        """
        if len(self.layers[0]) > 1:
            raise ValueError("a bidirectional layer needs the whole sequence and cannot process a single step")
        new, y = [], gates
        for n, ((direction,), old) in enumerate(zip(self.layers, state, strict=True)):
            if n:
                y = y if masks is None else y * masks[n - 1]
                gates = direction.gates(y[None, :])[0]
            new.append(direction.step(gates, old))
            y = new[-1][0].astype(gates.dtype)
        return y, tuple(new)


# Scores tanh(q W_q + k W_k)·w: for each, a function from its learned arrays to (W_q, W_k, w). A decoder that reads one
# query at a time computes k W_k once, in `RecurrentAttention.ready`.
HALVES: dict[Any, Callable] = {
    additive: lambda w_q, w_k, w: (w_q, w_k, w),
    concat: lambda w, u: (w[0], w[1], u),
}


class RecurrentAttention(Observable):
    """Attention of recurrent states s [T D] to a memory m [S M], by any mechanism: c_t = Σ_j a_tj m_j.

    With one head, the queries are the states and the keys are the memory vectors (Luong, Pham, Manning 2015), or m W_k
    if their size differs from that of the states. With several heads, the queries are s W_q and the keys m W_k. The
    values are the memory vectors, split among the heads. Values and outputs are not projected.

    Args:
        key: Key for the initial parameters.
        width: Size D of the states.
        memory: Size M of the memory vectors.
        heads: Number of heads; must divide `width`.
        mechanism: The attention mechanism.

    Raises:
        ValueError: `heads` does not divide `width`.
    """

    def __init__(self, key: PRNGKeyArray, width: int, memory: int, heads: int, mechanism: Mechanism):
        check_heads(width, heads, heads)
        self.heads, self.mechanism = heads, mechanism
        self.sizes = size, values = width // heads, memory // heads
        plain = lambda name, inputs, outputs: Dense(fold_key(key, name), inputs, outputs, bias=False)
        self.q = plain("q", width, width) if heads > 1 else None
        self.k = plain("k", memory, width) if heads > 1 or memory != width else None
        self.tokens = nnx.Dict(
            {
                name: Dense(fold_key(key, name), memory, heads * math.prod(shape_of(shape, size, values)))
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

    def keys_values(self, memory: Float[Array, "S M"]) -> dict[str, Array]:
        """Return "k", "v" and the mechanism's extra inputs by name, each [S H ...], for `read` and `ready`."""
        size, values = self.sizes
        flat = {"k": memory if self.k is None else self.k(memory), "v": memory}
        flat |= {name: dense(memory) for name, dense in self.tokens.items()}
        shapes = {"k": (size,), "v": (values,)}
        shapes |= {name: shape_of(shape, size, values) for name, shape in self.mechanism.tokens.items()}
        return {name: x.reshape(memory.shape[0], self.heads, *shapes[name]) for name, x in flat.items()}

    def ready(self, known: dict[str, Array]) -> dict[str, Array]:
        """Return the result of `keys_values` for `step`, with the work on the keys that every step would repeat.

        With additive and concat scores, k becomes k W_k. With others, nothing changes.
        """
        if self._score not in HALVES:
            return known
        one = lambda k, fixed: matmul(
            k.astype(accumulation_dtype(k.dtype)), self._halves(fixed)[1].astype(accumulation_dtype(k.dtype))
        )
        return known | {"k": jax.vmap(one, in_axes=(1, 0), out_axes=1)(known["k"], self._fixed())}

    def read(
        self, x: Float[Array, "T D"], known: dict[str, Array], mask: Mask = Full()
    ) -> tuple[Float[Array, "T M"], Any]:
        """Attend from states at positions 0…T−1 to keys at positions 0…S−1.

        Args:
            x: The states.
            known: The result of `keys_values`.
            mask: Which state may attend to which key, by position.

        Returns:
            The contexts c [T M], and the attention map [H T S], or None without an observer.
        """
        T, S = x.shape[0], known["k"].shape[0]
        # By default, a mechanism aligns the last query with the last key. For T = S that is the same, and the default
        # positions are static.
        places = {} if T == S else {"i": np.arange(T, dtype=np.int32)}
        return self._by_heads(self._attend, x, known, mask, places)

    def step(
        self, x: Float[Array, " D"], known: dict[str, Array], keep: Bool[Array, " S"], i: Int[Places, ""]
    ) -> tuple[Float[Array, " M"], Any]:
        """Attend from one state.

        Args:
            x: The state.
            known: The result of `ready`.
            keep: Which keys are not padding.
            i: Position of the state.

        Returns:
            The context c [M], and the attention map [H S], or None without an observer.
        """
        # For one query, a row of weights is as cheap as any other form of a pairwise mechanism.
        head = self._weigh if isinstance(self.mechanism, Pairwise) else self._attend
        c, maps = self._by_heads(head, x[None, :], known, KeyPadding(keep), {"i": jnp.asarray(i, jnp.int32)[None]})
        return c[0], None if maps is None else maps[:, 0]

    def _attend(self, q, k, v, mask: Mask, places: dict, extra: dict) -> tuple[Array, Any]:
        """Return the output and the observation of one head."""
        y = self.mechanism.attend(q, k, v, mask, **places, **extra)
        return y, self.observed(self.mechanism, q, k, mask, **places, **extra)

    def _weigh(self, q, k, v, mask: Mask, places: dict, extra: dict) -> tuple[Array, Any]:
        """Return the output and the observation of one head for one query, given keys from `ready`."""
        mechanism, i, j = self.mechanism, places["i"], np.arange(k.shape[0], dtype=np.int32)
        assert isinstance(mechanism, Pairwise)  # otherwise `step` calls `_attend`
        if self._score in HALVES:
            w_q, _, w = self._halves(extra)
            q, extra = matmul(q.astype(k.dtype), w_q.astype(k.dtype)), {}
            mechanism = replace(mechanism, score=lambda q, k: hidden_scores(q, k, w.astype(k.dtype)))
        weights = mechanism.weights(q, k, jnp.asarray(mask(i, j)), i=i, j=j, **extra)
        return weighted_sum(weights, v), self.observed(mechanism, q, k, mask, **places, **extra)

    def _by_heads(self, head: Callable, x, known: dict[str, Array], mask: Mask, places: dict) -> tuple[Array, Any]:
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
    def _score(self) -> Callable | None:
        return self.mechanism.score if isinstance(self.mechanism, Softmax) else None

    def _halves(self, fixed: dict[str, Array]) -> tuple[Array, Array, Array]:
        return HALVES[self._score](**fixed)


def _by_gates(initialiser: Callable, key: PRNGKeyArray, inputs: int, width: int, gates: int) -> Float[Array, "D G"]:
    """Return the matrices of all gates, initialised one by one and concatenated."""
    return jnp.concatenate([initialiser(key, (inputs, width)) for key in jax.random.split(key, gates)], axis=1)
