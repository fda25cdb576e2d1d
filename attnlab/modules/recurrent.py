"""Recurrent layers, and the attention that a recurrent decoder pays to a memory."""

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
    """One layer in one direction: a cell with its parameters.

    W starts uniform by Glorot and Bengio (2010), U orthogonal (Saxe et al. 2014), both gate by gate; biases at zero,
    that of a forget gate at one.
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
        """The input's share of the gates, for a whole sequence at once; of a narrower x, that of its first columns."""
        return self.share(x) + self.b[...].astype(x.dtype)[None, :]

    def share(self, x: Float[Array, "T D"], at: int = 0) -> Float[Array, "T G"]:
        """What the input's columns from `at` on give to the gates."""
        if at + x.shape[1] > self.w.shape[0]:
            raise ValueError(f"x has width {x.shape[1]} from {at} on, and the cell takes {self.w.shape[0]}")
        return flat_matmul(x, self.w[at : at + x.shape[1]].astype(x.dtype))

    def start(self, dtype) -> Any:
        """The state of zeros."""
        return tuple(jnp.zeros(self.width, accumulation_dtype(dtype)) for _ in range(self.cell.states))

    def step(self, gates: Float[Array, " G"], state: Any) -> Any:
        """The next state."""
        return self.cell.step(gates, state, **self._learned(gates.dtype))

    def run(self, gates: Float[Array, "T G"], keep: Bool[Array, " T"] | None, state: Any, reverse: bool = False) -> Any:
        """All states' outputs [T H] and the last state; padding leaves the state alone and answers zero."""
        learned = self._learned(gates.dtype)

        def advance(state, here):
            gates, kept = here
            new = self.cell.step(gates, state, **learned)
            state = new if keep is None else jax.tree.map(lambda new, old: jnp.where(kept, new, old), new, state)
            return state, state[0].astype(gates.dtype)

        state, y = jax.lax.scan(advance, state, (gates, keep), reverse=reverse)
        return zero_where_padded(keep, y), state

    def _learned(self, dtype) -> dict[str, Array]:
        inner = {} if self.inner is None else {"b": self.inner[...]}
        return {"u": self.u[...].astype(dtype)} | inner


class RecurrentLayer(nnx.Module):
    """`layers` recurrent layers of `width`, one on the other, in one direction or in both (Schuster and Paliwal 1997).

    Of both, each layer reads the joined outputs [→ ; ←] of both below it. `rate` is the dropout between layers
    (Zaremba et al. 2014), never along time. One example: x [T D] -> [T H], or [T 2H]. A state is, for each layer, the
    tuple of its cell; of both directions [→ ; ←] joined.

    Padding, wherever it stands, moves no state and reaches neither an output nor a gradient; its rows are zero. The
    way back starts at the last symbol that is kept. States are of float32 at least, outputs of the dtype of x.

    Raises ValueError for an unknown cell, and for a width or a number of layers below 1.
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
        """The outputs of the last layer, and the last state; from `start`, or zeros. `keep` None: no padding."""
        return self.run(self.gates(x, keep), keep, key, self.start(x.dtype) if start is None else start)

    def gates(self, x: Float[Array, "T D"], keep: Bool[Array, " T"] | None) -> tuple[Float[Array, "T G"], ...]:
        """The input's share of the first layer's gates, for each direction."""
        # Selected before the product: 0·NaN in a backward pass is NaN.
        return tuple(direction.gates(zero_where_padded(keep, x)) for direction in self.layers[0])

    def share(self, x: Float[Array, "T D"], at: int) -> tuple[Float[Array, "T G"], ...]:
        """What the input's columns from `at` on add to that."""
        return tuple(direction.share(x, at) for direction in self.layers[0])

    def run(
        self, gates: Any, keep: Bool[Array, " T"] | None, key: PRNGKeyArray | None, start: Any
    ) -> tuple[Array, Any]:
        """As the call, given what `gates` and `share` answer."""
        keys = [None] * len(self.layers) if key is None else jax.random.split(key, len(self.layers))
        y, last = jnp.zeros(()), []
        for n, (directions, begin) in enumerate(zip(self.layers, start, strict=True)):
            if n:
                y = dropout(y, self.rate, keys[n])
                gates = tuple(direction.gates(y) for direction in directions)
            begins = zip(*(jnp.split(part, len(directions)) for part in begin), strict=True)
            ways = zip(directions, gates, begins, strict=True)
            runs = [way.run(x, keep, state, bool(back)) for back, (way, x, state) in enumerate(ways)]
            y = jnp.concatenate([outputs for outputs, _ in runs], axis=1)
            last.append(tuple(map(jnp.concatenate, zip(*(state for _, state in runs), strict=True))))
        return y, tuple(last)

    def start(self, dtype) -> Any:
        """The state of zeros."""
        join = lambda states: tuple(map(jnp.concatenate, zip(*states, strict=True)))
        return tuple(join([direction.start(dtype) for direction in directions]) for directions in self.layers)

    def masks(self, T: int, dtype, key: PRNGKeyArray | None) -> Float[Array, "T L H"] | None:
        """What `step` multiplies the outputs between layers by, for T steps: dropout drawn at once."""
        if key is None or self.rate == 0 or len(self.layers) == 1:
            return None
        return dropout(jnp.ones((T, len(self.layers) - 1, self.outputs), dtype), self.rate, key)

    def step(
        self, gates: Float[Array, " G"], state: Any, masks: Float[Array, "L H"] | None = None
    ) -> tuple[Array, Any]:
        """One symbol, given its share of the gates: the output [H] and the state. Raises ValueError for both ways."""
        if len(self.layers[0]) > 1:
            raise ValueError("a layer of both directions reads whole sequences: it makes no single step")
        new, y = [], gates
        for n, ((direction,), old) in enumerate(zip(self.layers, state, strict=True)):
            if n:
                y = y if masks is None else y * masks[n - 1]
                gates = direction.gates(y[None, :])[0]
            new.append(direction.step(gates, old))
            y = new[-1][0].astype(gates.dtype)
        return y, tuple(new)


# Scores of a hidden layer over the pair, as that layer's maps of query and key and its last vector.
HALVES: dict[Any, Callable] = {
    additive: lambda w_q, w_k, w: (w_q, w_k, w),
    concat: lambda w, u: (w[0], w[1], u),
}


class RecurrentAttention(Observable):
    """c_t = Σ_j a_tj m_j: what states of `width` read in a memory m [S M], mixed by any mechanism.

    One head scores the states against the vectors as they are (Luong, Pham, Manning 2015), against m W_k where the
    vectors have another width; several heads score s W_q against m W_k. The values are the vectors themselves, shared
    out among the heads: what is read is not projected.

    Raises ValueError where the heads do not divide the width.
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
        """Keys, values and extras of a memory by heads [S H ...], for `read`."""
        size, values = self.sizes
        made = {"k": memory if self.k is None else self.k(memory), "v": memory}
        made |= {name: dense(memory) for name, dense in self.tokens.items()}
        shapes = {"k": (size,), "v": (values,)}
        shapes |= {name: shape_of(shape, size, values) for name, shape in self.mechanism.tokens.items()}
        return {name: x.reshape(memory.shape[0], self.heads, *shapes[name]) for name, x in made.items()}

    def ready(self, known: dict[str, Array]) -> dict[str, Array]:
        """What `remember` made, for `step`: with what every step would do to the keys done once."""
        if self._score not in HALVES:
            return known
        one = lambda k, fixed: matmul(
            k.astype(accumulation_dtype(k.dtype)), self._halves(fixed)[1].astype(accumulation_dtype(k.dtype))
        )
        return known | {"k": jax.vmap(one, in_axes=(1, 0), out_axes=1)(known["k"], self._fixed())}

    def read(
        self, x: Float[Array, "T D"], known: dict[str, Array], mask: Mask = Full()
    ) -> tuple[Float[Array, "T M"], Any]:
        """Reads at states 0…T−1 from keys 0…S−1. Returns c, and the map [H T S] or None without an observer."""
        T, S = x.shape[0], known["k"].shape[0]
        # The mechanism's own default aligns the ends; where that is the same it knows the positions while tracing.
        places = {} if T == S else {"i": np.arange(T, dtype=np.int32)}
        return self._by_heads(self._attend, x, known, mask, places)

    def step(
        self, x: Float[Array, " D"], known: dict[str, Array], keep: Bool[Array, " S"], i: Int[Places, ""]
    ) -> tuple[Float[Array, " M"], Any]:
        """Reads at one state i from what `ready` made. Returns c, and the map [H S] or None without an observer."""
        # For one query the pairs are all there is: no other form can save any.
        head = self._weigh if isinstance(self.mechanism, Pairwise) else self._attend
        c, look = self._by_heads(head, x[None, :], known, KeyPadding(keep), {"i": jnp.asarray(i, jnp.int32)[None]})
        return c[0], None if look is None else look[:, 0]

    def _attend(self, q, k, v, mask: Mask, places: dict, extra: dict) -> tuple[Array, Any]:
        """For one head."""
        y = self.mechanism.attend(q, k, v, mask, **places, **extra)
        return y, self.observed(self.mechanism, q, k, mask, **places, **extra)

    def _weigh(self, q, k, v, mask: Mask, places: dict, extra: dict) -> tuple[Array, Any]:
        """For one head and one query."""
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

        c, look = jax.vmap(one, in_axes=(1, 1, 1, 0), out_axes=(1, 0))(q, queries, known, self._fixed())
        return c.reshape(x.shape[0], -1), look

    def _fixed(self) -> dict[str, Array]:
        return extras(self.mechanism, self.learned, self.heads)

    @property
    def _score(self) -> Callable | None:
        return self.mechanism.score if isinstance(self.mechanism, Softmax) else None

    def _halves(self, fixed: dict[str, Array]) -> tuple[Array, Array, Array]:
        return HALVES[self._score](**fixed)


def _by_gates(initialiser: Callable, key: PRNGKeyArray, inputs: int, width: int, gates: int) -> Float[Array, "D G"]:
    """Matrices of gates side by side, each started by itself."""
    return jnp.concatenate([initialiser(key, (inputs, width)) for key in jax.random.split(key, gates)], axis=1)
