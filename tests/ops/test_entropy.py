from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.ops import entropy
from attnlab.ops.entropy import cross_entropy

pytestmark = pytest.mark.usefixtures("x64")

N, D, V = 7, 3, 5
BIASED = pytest.mark.parametrize("biased", [False, True])
SMOOTHING = pytest.mark.parametrize("smoothing", [0.0, 0.1])


@pytest.fixture(params=[1, 2 * V, 3 * V, 2**20], ids=lambda scores: f"{scores} at once")
def at_once(request, monkeypatch):
    monkeypatch.setattr(entropy, "AT_ONCE", request.param)


def drawn(biased, dtype=jnp.float64):
    draw = np.random.default_rng(0)
    x, w, b = (jnp.asarray(draw.normal(size=shape), dtype) for shape in ((N, D), (D, V), (V,)))
    target, weights = jnp.asarray(draw.integers(V, size=N)), jnp.asarray(draw.random(N), dtype)
    return (x, w, b if biased else None), (target, weights.at[2].set(0))


def at_all(x, w, b, target, weights, smoothing):
    """Computes the equation of the docstring with all logits at once."""
    s = x @ w if b is None else x @ w + b[None, :]
    aim = (1 - smoothing) * jax.nn.one_hot(target, V) + smoothing / V
    return (weights * -(aim * jax.nn.log_softmax(s)).sum(axis=1)).sum()


@BIASED
@SMOOTHING
def test_blocks_of_any_size_equal_all_logits_at_once(at_once, biased, smoothing):
    arrays, given = drawn(biased)
    found = cross_entropy(*arrays, *given, smoothing)
    np.testing.assert_allclose(found.loss, at_all(*arrays, *given, smoothing), rtol=1e-13)
    for n in (0, 3, 6):
        alone = jnp.zeros(N).at[n].set(1.0)
        np.testing.assert_allclose(found.nats[n], at_all(*arrays, given[0], alone, smoothing), rtol=1e-13)
    x, w, b = arrays
    scores = x @ w if b is None else x @ w + b[None, :]
    kept = np.asarray(given[1] != 0)
    np.testing.assert_array_equal(found.right[kept], (scores.argmax(axis=1) == given[0])[kept])


@SMOOTHING
def test_the_loss_equals_pytorch(at_once, smoothing):
    torch = pytest.importorskip("torch")
    (x, w, b), (target, weights) = drawn(True)
    scores = torch.tensor(np.asarray(x @ w + b[None, :]))
    right = torch.tensor(np.asarray(target, np.int64))
    each = torch.nn.functional.cross_entropy(scores, right, reduction="none", label_smoothing=smoothing)
    expected = float((each * torch.tensor(np.asarray(weights))).sum())
    np.testing.assert_allclose(cross_entropy(x, w, b, target, weights, smoothing).loss, expected, rtol=1e-12)


@BIASED
@SMOOTHING
def test_gradients_equal_those_of_all_logits_at_once(at_once, biased, smoothing):
    arrays, given = drawn(biased)
    ours = jax.grad(lambda arrays: 3 * cross_entropy(*arrays, *given, smoothing).loss)(arrays)
    theirs = jax.grad(lambda arrays: 3 * at_all(*arrays, *given, smoothing))(arrays)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-14), ours, theirs)


def test_gradients_agree_with_finite_differences(at_once):
    arrays, given = drawn(True)
    loss = lambda *arrays: cross_entropy(*map(jnp.asarray, arrays), *given, 0.1).loss
    check_grads(loss, arrays, order=1, modes="rev")


def test_lanes_are_independent(at_once):
    arrays, given = drawn(True)
    slopes = jax.grad(lambda arrays, weights: cross_entropy(*arrays, given[0], weights).loss)
    lanes = jax.tree.map(lambda a: jnp.stack([a, 2 * a, -a]), (arrays, given[1]))
    together = jax.vmap(slopes)(*lanes)
    for n in range(3):
        one = slopes(*jax.tree.map(lambda a, n=n: a[n], lanes))
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-12), jax.tree.map(lambda a, n=n: a[n], together), one)


def test_a_row_of_weight_zero_has_no_effect(at_once):
    (x, w, b), given = drawn(True)
    value = lambda x: jax.value_and_grad(lambda *arrays: cross_entropy(*arrays, *given).loss, (0, 1, 2))(x, w, b)
    jax.tree.map(np.testing.assert_array_equal, value(x), value(x.at[2].set(jnp.nan)))
    assert not np.any(value(x)[1][0][2])


def test_a_nonfinite_row_gives_a_nonfinite_loss():
    (x, w, b), given = drawn(True)
    assert np.isnan(cross_entropy(x.at[3].set(jnp.nan), w, b, *given).loss)


def test_equal_logits_are_not_a_correct_prediction():
    alike = cross_entropy(jnp.zeros((2, D)), jnp.ones((D, V)), None, jnp.array([0, 4]), jnp.ones(2))
    assert not alike.right.any()
    np.testing.assert_allclose(alike.nats, np.log(V))


def test_half_precision_is_summed_in_float32():
    arrays, given = drawn(True, jnp.bfloat16)
    given = given[0], given[1].astype(jnp.float32)
    found, slopes = jax.value_and_grad(lambda arrays: cross_entropy(*arrays, *given).loss)(arrays)
    assert found.dtype == jnp.float32
    assert [slope.dtype for slope in slopes] == [jnp.bfloat16] * 3
    wider = jax.tree.map(lambda a: a.astype(jnp.float64), (arrays, given[1]))
    np.testing.assert_allclose(found, at_all(*wider[0], given[0], wider[1], 0.0), rtol=1e-5)


def test_memory_does_not_grow_with_rows_times_symbols():
    rows, symbols = 4096, 4096
    shapes = [(rows, 8), (8, symbols), (symbols,)]
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    given = jax.ShapeDtypeStruct((rows,), jnp.int32), jax.ShapeDtypeStruct((rows,), jnp.float32)
    step = jax.grad(lambda arrays, given: cross_entropy(*arrays, *given).loss)
    held = jax.jit(step).lower(arrays, given).compile().memory_analysis().temp_size_in_bytes
    assert held < 4 * rows * symbols / 2
