"""Recurrent cells: functions of one step of one example.

Each cell is a function `(x, state, u, ...) -> state`. x [G·H] is the input's contribution to the gates, bias included:
it is computed for a whole sequence by one product in advance. u [H G·H] are the weights of the state's contribution,
one product per step. A state is a tuple whose first entry is the output h [H]; it has `accumulation_dtype` precision.
A cell that is linear in its state takes no u: a whole sequence is then an associative scan. `CELLS` lists the cells by
name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.precision import accumulation_dtype, matmul

State = tuple[Float[Array, " H"], ...]
LRU_POWER = 8.0  # c of the RG-LRU


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


def rg_lru(x: Float[Array, " G"], state: State, decay: Float[Array, " H"]) -> State:
    """Real-gated linear recurrent unit (RG-LRU): h' = a∘h + √(1 − a²)∘(i∘n).

    a = σ(Λ)^(c r) with c = 8, and r, i = σ(x_r), σ(x_i). The gates do not depend on the state. The input n is not
    bounded. Gates are in the order r, i, n.

    Args:
      x: the input's contribution to the gates and n, biases included [3H].
      state: (h,).
      decay: learned decay Λ [H].

    Returns:
      The new state (h',).

    The authors' code (RecurrentGemma) has a factor 1 instead of √(1 − a²) for the first token of a sequence. It is
    about 22 times larger for a = 0.999. The paper has no exception, and neither has this function.

    Source: De et al. 2024, section 2.4 (arXiv 2402.19427).
    """
    a, b = rg_lru_terms(x[None], decay)
    return (a[0] * state[0] + b[0],)


def rg_lru_terms(x: Float[Array, "T G"], decay: Float[Array, " H"]) -> tuple[Float[Array, "T H"], Float[Array, "T H"]]:
    """Returns a and b of h' = a∘h + b for every token of an RG-LRU. See `rg_lru`."""
    r, i, n = jnp.split(x.astype(accumulation_dtype(x.dtype)), 3, axis=1)
    slowness = jnp.log(jax.nn.softplus(-decay.astype(r.dtype))) + jnp.log(2 * LRU_POWER)
    log_z = jax.nn.log_sigmoid(r) + slowness[None]
    z = jnp.exp(log_z)  # a² = e^−z
    # √(1 − e^−z) = √z √((1 − e^−z) / z): as a power of e, √z has a finite gradient where the gate r shuts and z → 0.
    small = z < jnp.finfo(z.dtype).eps
    ratio = jnp.where(small, 1, -jnp.expm1(-z) / jnp.where(small, 1, z))
    return jnp.exp(-z / 2), jnp.exp(log_z / 2) * jnp.sqrt(ratio) * jax.nn.sigmoid(i) * n


def lru_decay(key: Array, width: int) -> Float[Array, " H"]:
    """Returns initial decays Λ of an RG-LRU, with σ(Λ)^c uniform in 0.9 … 0.999 (De et al. 2024, section 2.4).

    In the authors' code the square of σ(Λ)^c is uniform, which gives slightly slower decays.
    """
    log_a = jnp.log(jax.random.uniform(key, (width,), jnp.float32, 0.9, 0.999)) / LRU_POWER
    return log_a - jnp.log(-jnp.expm1(log_a))


def scan_linear(
    a: Float[Array, "T H"], b: Float[Array, "T H"], h: Float[Array, " H"], reverse: bool = False
) -> Float[Array, "T H"]:
    """Returns all states of h' = a∘h + b, by an associative scan.

    Args:
      a: factors of the state [T H].
      b: terms [T H].
      h: the state before the first token, or after the last one if `reverse`.
      reverse: whether to run from the last token to the first.
    """
    if len(b) == 0:
        return b
    first = -1 if reverse else 0
    b = b.at[first].add(a[first] * h)
    return jax.lax.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b), reverse=reverse)[1]


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
    terms: Callable | None = None
    """Function (x [T G·H], decay [H]) -> (a, b) [T H] of a cell h' = a∘h + b without weights U, else None."""


CELLS: dict[str, Cell] = {
    "rnn": Cell(rnn, gates=1, states=1),
    "gru": Cell(gru, gates=3, states=1, inner=True),
    "lstm": Cell(lstm, gates=4, states=2, remembers=1),
    "rg-lru": Cell(rg_lru, gates=3, states=1, terms=rg_lru_terms),
}
