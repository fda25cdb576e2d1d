"""Recurrent cells: functions of one step of one example.

Each cell is a function `(x, state, u, ...) -> state`. x [G·H] is the input's contribution to the gates, bias included:
it is computed for a whole sequence by one product in advance. u [H G·H] are the weights of the state's contribution,
one product per step. A state is a tuple whose first entry is the output h [H]; it has `accumulation_dtype` precision.
`CELLS` lists the cells by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.precision import accumulation_dtype, matmul

State = tuple[Float[Array, " H"], ...]


def rnn(x: Float[Array, " H"], state: State, u: Float[Array, "H H"]) -> State:
    """Elman network: h' = tanh(x + h U) (Elman 1990).

    Args:
      x: the input's contribution, bias included [H].
      state: (h,).
      u: recurrent weights U [H H].

    Returns:
      The new state (h',).
    """
    x, y = _shares(x, state, u)
    return (jnp.tanh(x + y),)


def gru(x: Float[Array, " G"], state: State, u: Float[Array, "H G"], b: Float[Array, " H"]) -> State:
    """Gated recurrent unit: h' = (1 − z)∘n + z∘h.

    r, z = σ(x_r + h U_r), σ(x_z + h U_z) and n = tanh(x_n + r∘(h U_n + b)). The reset gate is applied after the
    product, as in cuDNN and PyTorch; the paper resets h before it. Gates are in the order r, z, n.

    Args:
      x: the input's contribution to the gates, biases included [3H].
      state: (h,).
      u: recurrent weights U [H 3H].
      b: bias of n inside the reset gate [H].

    Returns:
      The new state (h',).

    Source: Cho et al. 2014.
    """
    x, y = _shares(x, state, u)
    (x_r, x_z, x_n), (y_r, y_z, y_n) = jnp.split(x, 3), jnp.split(y, 3)
    r, z = jax.nn.sigmoid(x_r + y_r), jax.nn.sigmoid(x_z + y_z)
    n = jnp.tanh(x_n + r * (y_n + b.astype(y.dtype)))
    return ((1 - z) * n + z * state[0],)


def lstm(x: Float[Array, " G"], state: State, u: Float[Array, "H G"]) -> State:
    """Long short-term memory: c' = f∘c + i∘g, h' = o∘tanh(c').

    i, f, o = σ(x + h U) and g = tanh(x_g + h U_g). It has a forget gate (Gers et al. 2000) and no peepholes. Gates are
    in the order i, f, g, o.

    Args:
      x: the input's contribution to the gates, biases included [4H].
      state: (h, c).
      u: recurrent weights U [H 4H].

    Returns:
      The new state (h', c').

    Source: Hochreiter and Schmidhuber 1997.
    """
    x, y = _shares(x, state, u)
    i, f, g, o = jnp.split(x + y, 4)
    c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def _shares(x, state, u):
    """Returns the contributions of the input and of the state to the gates."""
    dtype = accumulation_dtype(u.dtype)
    return x.astype(dtype), matmul(state[0].astype(u.dtype)[None, :], u)[0]


@dataclass(frozen=True)
class Cell:
    """A recurrent cell and its sizes."""

    step: Callable
    """The function of one step."""
    gates: int
    """Number of gates of width H."""
    states: int
    """Number of vectors of the state."""
    remembers: int | None = None
    """Index of the gate whose bias is initialized as one, or None.

    It makes the cell remember from the start of training (Gers et al. 2000; Jozefowicz et al. 2015).
    """
    inner: bool = False
    """Whether the cell takes a bias b [H] of its own."""


CELLS: dict[str, Cell] = {
    "rnn": Cell(rnn, gates=1, states=1),
    "gru": Cell(gru, gates=3, states=1, inner=True),
    "lstm": Cell(lstm, gates=4, states=2, remembers=1),
}
