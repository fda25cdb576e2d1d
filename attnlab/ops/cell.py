"""Recurrent cells: one step of one example.

Each is `(x, state, u, ...) -> state`. x [G·H] is the input's share of the gates, bias included: one product for a whole
sequence makes it beforehand. u [H G·H] makes the state's share: one product a step. A state is a tuple whose first
entry is the output h [H]; it is kept in `accumulation_dtype` precision. `CELLS` lists them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.precision import accumulation_dtype, matmul


def rnn(x: Float[Array, " H"], state: Any, u: Float[Array, "H H"]) -> Any:
    """h' = tanh(x + h U) (Elman 1990)."""
    x, y = _shares(x, state, u)
    return (jnp.tanh(x + y),)


def gru(x: Float[Array, " G"], state: Any, u: Float[Array, "H G"], b: Float[Array, " H"]) -> Any:
    """h' = (1 − z)∘n + z∘h with r, z = σ(x_r + h U_r), σ(x_z + h U_z) and n = tanh(x_n + r∘(h U_n + b)).

    The gated recurrent unit (Cho et al. 2014) with the reset gate after the product, as cuDNN and PyTorch have it; the
    paper resets h before it. Gates stand in the order r, z, n.
    """
    x, y = _shares(x, state, u)
    (x_r, x_z, x_n), (y_r, y_z, y_n) = jnp.split(x, 3), jnp.split(y, 3)
    r, z = jax.nn.sigmoid(x_r + y_r), jax.nn.sigmoid(x_z + y_z)
    n = jnp.tanh(x_n + r * (y_n + b.astype(y.dtype)))
    return ((1 - z) * n + z * state[0],)


def lstm(x: Float[Array, " G"], state: Any, u: Float[Array, "H G"]) -> Any:
    """c' = f∘c + i∘g, h' = o∘tanh(c') with i, f, o = σ(x + h U) and g = tanh(x_g + h U_g).

    Long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate (Gers et al. 2000), without peepholes.
    Gates stand in the order i, f, g, o; the state is (h, c).
    """
    x, y = _shares(x, state, u)
    i, f, g, o = jnp.split(x + y, 4)
    c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def _shares(x, state, u):
    """What the input and what the state give to the gates."""
    dtype = accumulation_dtype(u.dtype)
    return x.astype(dtype), matmul(state[0].astype(u.dtype)[None, :], u)[0]


@dataclass(frozen=True)
class Cell:
    """A cell: its step, how many gates of width H it has, and how many vectors its state.

    `remembers` is the gate whose bias starts at one, so that memory lasts before anything is learned (Gers et al.
    2000; Jozefowicz et al. 2015); `inner` whether it takes a bias b [H] of its own.
    """

    step: Callable
    gates: int
    states: int
    remembers: int | None = None
    inner: bool = False


CELLS: dict[str, Cell] = {
    "rnn": Cell(rnn, gates=1, states=1),
    "gru": Cell(gru, gates=3, states=1, inner=True),
    "lstm": Cell(lstm, gates=4, states=2, remembers=1),
}
