import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.ops.cell import CELLS, gru, lru_decay, lstm, rg_lru

H = 5
cells = pytest.mark.parametrize("name", CELLS)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_formula(x, state, u):
    return (np.tanh(x + state[0] @ u),)


def gru_formula(x, state, u, b):
    h, n = state[0], len(state[0])
    r = sigmoid(x[:n] + h @ u[:, :n])
    z = sigmoid(x[n : 2 * n] + h @ u[:, n : 2 * n])
    new = np.tanh(x[2 * n :] + r * (h @ u[:, 2 * n :] + b))
    return ((1 - z) * new + z * h,)


def lstm_formula(x, state, u):
    h, c = state
    i, f, g, o = (x + h @ u).reshape(4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def rg_lru_formula(x, state, decay):
    r, i, n = x.reshape(3, -1)
    a = sigmoid(decay) ** (8 * sigmoid(r))
    return (a * state[0] + np.sqrt(1 - a**2) * sigmoid(i) * n,)


FORMULAS = {"rnn": rnn_formula, "gru": gru_formula, "lstm": lstm_formula, "rg_lru": rg_lru_formula}


def drawn(name, dtype=jnp.float32):
    """Returns (x, state, learned) of a cell."""
    cell, rng = CELLS[name], np.random.default_rng(3)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), dtype)
    learned = {"u": draw(H, cell.gates * H)} if cell.terms is None else {"decay": draw(H)}
    learned |= {"b": draw(H)} if cell.inner else {}
    return draw(cell.gates * H), tuple(draw(H) for _ in range(cell.states)), learned


@cells
@pytest.mark.usefixtures("x64")
def test_values_and_gradients_equal_the_formula(name):
    given, step = drawn(name, jnp.float64), lambda x, state, learned: CELLS[name].step(x, state, **learned)
    x, state, learned = jax.tree.map(np.asarray, given)
    for found, expected in zip(step(*given), FORMULAS[name.replace("-", "_")](x, state, **learned), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    check_grads(jax.jit(step), given, order=1, modes=["rev"], atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
@pytest.mark.usefixtures("x64")
def test_it_equals_the_cell_of_pytorch(name):
    """Compares with PyTorch's cells.

    Their weights are stacked gate by gate, and their inputs are multiplied inside, here by the identity.
    """
    torch = pytest.importorskip("torch")
    kind = {"rnn": torch.nn.RNNCell, "gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}[name]
    x, state, learned = jax.tree.map(np.asarray, drawn(name, jnp.float64))
    cell = kind(len(x), H, dtype=torch.float64)
    bias = np.zeros(len(x))
    bias[2 * H :] = learned.get("b", 0)
    with torch.no_grad():
        cell.weight_ih.copy_(torch.eye(len(x)))
        cell.weight_hh.copy_(torch.tensor(learned["u"].T))
        cell.bias_ih.zero_()
        cell.bias_hh.copy_(torch.tensor(bias if name == "gru" else np.zeros(len(x))))
        given = [torch.tensor(part)[None] for part in state]
        expected = cell(torch.tensor(x)[None], tuple(given) if name == "lstm" else given[0])
    expected = expected if name == "lstm" else (expected,)
    x, state, learned = drawn(name, jnp.float64)
    for found, other in zip(CELLS[name].step(x, state, **learned), expected, strict=True):
        np.testing.assert_allclose(found, other[0].numpy(), atol=1e-12)


def test_closed_and_open_gates_keep_a_state_exactly():
    (x, state, learned), shut = drawn("gru"), 1e4
    np.testing.assert_array_equal(gru(x.at[H : 2 * H].set(shut), state, **learned)[0], state[0])
    x, state, learned = drawn("lstm")
    np.testing.assert_array_equal(lstm(x.at[:H].set(-shut).at[H : 2 * H].set(shut), state, **learned)[1], state[1])


@cells
def test_extreme_inputs_leave_everything_finite(name):
    x, state, learned = drawn(name)
    run = jax.jit(jax.value_and_grad(lambda x: sum(part.sum() for part in CELLS[name].step(x, state, **learned))))
    for scale in (1e4, -1e4, 1e30):
        value, gradient = run(x * scale)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_an_rg_lru_starts_where_its_authors_do_and_a_shut_gate_keeps_its_state():
    """σ(Λ)^c is uniform in 0.9 … 0.999. With r = 0 the state does not change, and the gradient of √(1−a²) is finite."""
    found = sigmoid(np.asarray(lru_decay(jax.random.key(0), 4000), np.float64)) ** 8
    assert found.min() == pytest.approx(0.9, abs=1e-3)
    assert found.max() == pytest.approx(0.999, abs=1e-3)
    assert found.mean() == pytest.approx((0.9 + 0.999) / 2, abs=2e-3)
    x, state, learned = drawn("rg-lru")
    for shut in (-20.0, -200.0, -1e4):
        x = x.at[:H].set(shut)
        np.testing.assert_allclose(rg_lru(x, state, **learned)[0], state[0], atol=1e-3)
        assert np.isfinite(jax.grad(lambda x: rg_lru(x, state, **learned)[0].sum())(x)).all()


@cells
def test_states_are_float32_for_all_inputs(name):
    x, state, learned = drawn(name)
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (x, learned))
    found = CELLS[name].step(half[0], state, **half[1])
    x, state, learned = jax.tree.map(np.asarray, (x, state, learned))
    for part, exact in zip(found, FORMULAS[name.replace("-", "_")](x, state, **learned), strict=True):
        assert part.dtype == jnp.float32
        np.testing.assert_allclose(part, exact, atol=0.05)
