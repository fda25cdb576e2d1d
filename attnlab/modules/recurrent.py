"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from attnlab.mechanisms.inputs import zero_where_padded
from attnlab.modules.dense import INITIALISERS, fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.ops.cell import CELLS, lru_decay, scan_linear
from attnlab.ops.counts import check_counts
from attnlab.ops.dense import flat_matmul
from attnlab.ops.layer import dropout, split_keys
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.varying import varying_like


class RecurrentDirection(nnx.Module):
    """One recurrent layer in one direction: a cell and its parameters.

    The input weights W are initialised uniformly (Glorot and Bengio 2010) and the recurrent weights U as orthogonal
    matrices (Saxe et al. 2014), each gate separately. Biases are initialised to zero, the bias of a forget gate to one.
    A cell that is linear in its state has a decay per unit instead of U.

    Args:
        key: Key for the initial parameters.
        cell: Name of the cell in `attnlab.ops.cell.CELLS`.
        inputs: Size of the inputs.
        width: Size H of the state.
    """

    def __init__(self, key: PRNGKeyArray, cell: str, inputs: int, width: int):
        self.cell, self.width = CELLS[cell], width
        self.w = nnx.Param(_by_gates(INITIALISERS["xavier"], fold_key(key, "w"), inputs, width, self.cell.gates))
        linear, orthogonal = self.cell.terms is not None, jax.nn.initializers.orthogonal()
        gates = lambda: _by_gates(orthogonal, fold_key(key, "u"), width, width, self.cell.gates)
        self.u = None if linear else nnx.Param(gates())
        self.decay = NoDecay(lru_decay(fold_key(key, "decay"), width)) if linear else None
        bias = np.zeros((self.cell.gates, width), np.float32)
        if self.cell.remembers is not None:
            bias[self.cell.remembers] = 1
        self.b = NoDecay(jnp.asarray(bias.reshape(-1)))
        self.inner = NoDecay(jnp.zeros(width)) if self.cell.inner else None

    def gates(self, x: Float[Array, "T D"]) -> Float[Array, "T G"]:
        """Return the input's contribution to the gates, bias included, for a whole sequence at once.

        If x is narrower than the cell's input, it counts as the first columns of that input. `partial_gates` adds the
        rest.
        """
        return self.partial_gates(x) + self.b[...].astype(x.dtype)[None, :]

    def partial_gates(self, x: Float[Array, "T D"], at: int = 0) -> Float[Array, "T G"]:
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

    def start(self, dtype) -> PyTree:
        """Return the zero state for inputs of `dtype`. It is at least float32."""
        return tuple(jnp.zeros(self.width, accumulation_dtype(dtype)) for _ in range(self.cell.states))

    def step(self, gates: Float[Array, " G"], state: PyTree) -> PyTree:
        """Return the next state."""
        return self.cell.step(gates, state, **self._learned(gates.dtype))

    def run(
        self, gates: Float[Array, "T G"], keep: Bool[Array, " T"] | None, state: PyTree, reverse: bool = False
    ) -> tuple[Array, PyTree]:
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
        if self.cell.terms is not None:
            a, b = self.cell.terms(gates, **learned)
            if keep is not None:
                a, b = jnp.where(keep[:, None], a, 1), jnp.where(keep[:, None], b, 0)
            h = scan_linear(a, b, state[0], reverse)
            last = h[0 if reverse else -1] if len(h) else state[0]
            return zero_where_padded(keep, h.astype(gates.dtype)), (last,)

        def advance(state, inputs):
            gates, kept = inputs
            new = self.cell.step(gates, state, **learned)
            state = new if keep is None else jax.tree.map(lambda new, old: jnp.where(kept, new, old), new, state)
            return state, state[0].astype(gates.dtype)

        state = varying_like(state, (gates, keep))
        state, y = jax.lax.scan(advance, state, (gates, keep), reverse=reverse)
        return zero_where_padded(keep, y), state

    def _learned(self, dtype) -> dict[str, Array]:
        learned = {} if self.u is None else {"u": self.u[...].astype(dtype)}
        learned |= {} if self.inner is None else {"b": self.inner[...]}
        return learned | ({} if self.decay is None else {"decay": self.decay[...]})


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
        self,
        x: Float[Array, "T D"],
        keep: Bool[Array, " T"] | None,
        key: PRNGKeyArray | None = None,
        start: PyTree = None,
    ) -> tuple[Float[Array, "T H"], PyTree]:
        """Run all layers over a sequence.

        Args:
            x: The inputs.
            keep: False marks padding. None means no padding.
            key: Key for dropout. None means no dropout.
            start: The initial state. None means zeros.

        Returns:
            The outputs of the last layer, and the final state.

        Raises:
            ValueError: x has another width than the layer's inputs.
        """
        # `gates` accepts fewer columns, because `partial_gates` may add the rest.
        if x.shape[1] != (inputs := self.layers[0][0].w.shape[0]):
            raise ValueError(f"x has width {x.shape[1]}, expected {inputs}")
        return self.run(self.gates(x, keep), keep, key, self.start(x.dtype) if start is None else start)

    def gates(self, x: Float[Array, "T D"], keep: Bool[Array, " T"] | None) -> tuple[Float[Array, "T G"], ...]:
        """Return the input's contribution to the first layer's gates, bias included, for each direction."""
        # Padding is zeroed before the product, because 0·NaN in a backward pass is NaN.
        return tuple(direction.gates(zero_where_padded(keep, x)) for direction in self.layers[0])

    def partial_gates(self, x: Float[Array, "T D"], at: int) -> tuple[Float[Array, "T G"], ...]:
        """Return what input columns from index `at` on add to the result of `gates`, for each direction."""
        return tuple(direction.partial_gates(x, at) for direction in self.layers[0])

    def run(
        self,
        gates: Sequence[Float[Array, "T G"]],
        keep: Bool[Array, " T"] | None,
        key: PRNGKeyArray | None,
        start: PyTree,
    ) -> tuple[Array, PyTree]:
        """Run all layers, given the first layer's `gates`. Otherwise like a call, but `start` is required."""
        keys = split_keys(key, len(self.layers))
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

    def start(self, dtype) -> PyTree:
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
        self, gates: Float[Array, " G"], state: PyTree, masks: Float[Array, "L H"] | None = None
    ) -> tuple[Array, PyTree]:
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


def _by_gates(initialiser: Callable, key: PRNGKeyArray, inputs: int, width: int, gates: int) -> Float[Array, "D G"]:
    """Return the matrices of all gates, initialised one by one and concatenated."""
    return jnp.concatenate([initialiser(key, (inputs, width)) for key in jax.random.split(key, gates)], axis=1)
