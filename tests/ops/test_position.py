import cmath
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.position import (
    alibi_slopes,
    clipped,
    flow_path,
    relative_scores,
    relative_values,
    rotary,
    rotary_2d,
    sinusoidal,
    sinusoidal_2d,
    t5_buckets,
    xpos,
    xpos_max_length,
)

pytestmark = pytest.mark.usefixtures("x64")
I32 = jnp.int32


def same_vector(T, K=8):
    """Returns one query and one key, repeated at T positions."""
    return (jnp.tile(jax.random.normal(jax.random.key(n), (1, K)), (T, 1)) for n in (0, 1))


def test_the_sinusoid_interleaves_sine_and_cosine():
    p = sinusoidal(jnp.array([0, 3], I32), 4, jnp.float64)
    np.testing.assert_allclose(p, [[0, 1, 0, 1], [np.sin(3), np.cos(3), np.sin(0.03), np.cos(0.03)]], atol=1e-12)


def test_products_of_sinusoids_depend_on_the_distance_alone():
    p = sinusoidal(jnp.arange(40, dtype=I32), 16, jnp.float64)
    products = p @ p.T
    frequencies = 10000.0 ** (-2 * np.arange(8) / 16)
    for distance in (0, 1, 7, 30):
        expected = np.cos(frequencies * distance).sum()
        np.testing.assert_allclose(np.diagonal(products, distance), expected, atol=1e-10)


def test_products_of_rotated_vectors_depend_on_the_distance_alone_and_norms_are_kept():
    q, k = same_vector(30)
    i = jnp.arange(30, dtype=I32)
    products = rotary(q, i) @ rotary(k, i).T
    for distance in (-11, 0, 3):
        diagonal = np.diagonal(products, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-10)
    assert np.ptp(products[0]) > 0.1
    np.testing.assert_allclose(jnp.linalg.norm(rotary(q, i), axis=1), jnp.linalg.norm(q, axis=1), atol=1e-12)


def test_half_precision_angles_are_computed_in_float32():
    i = jnp.array([1000], I32)
    np.testing.assert_allclose(
        sinusoidal(i, 4, jnp.bfloat16).astype(jnp.float64), sinusoidal(i, 4, jnp.float64), atol=4e-3
    )


def test_xpos_is_rotary_with_products_scaled_by_zeta_to_the_distance():
    (q, k), i = same_vector(40), np.arange(40, dtype=np.int32)
    products = np.asarray(xpos(q, i, 1, scale=8.0) @ xpos(k, i, -1, scale=8.0).T)
    pairs = np.asarray(rotary(q, i)).reshape(40, 4, 2), np.asarray(rotary(k, i)).reshape(40, 4, 2)
    zeta = (2 * np.arange(4) / 8 + 0.4) / 1.4
    for a, b in ((0, 0), (9, 2), (39, 0), (3, 8)):
        expected = sum(zeta[n] ** ((a - b) / 8) * (pairs[0][a, n] @ pairs[1][b, n]) for n in range(4))
        assert products[a, b] == pytest.approx(expected, rel=1e-10)
    for distance in (-7, 0, 12):
        diagonal = np.diagonal(products, -distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-9)


# In float32 the angle of position 18,000 has an ulp of 1e-3. This test shows that the factors are in range.
@pytest.mark.parametrize(("dtype", "digits"), [("float32", 1e-2), ("bfloat16", 3e-2), ("float16", 1e-2)])
def test_xpos_is_accurate_within_its_length_and_nan_beyond(dtype, digits):
    reach = xpos_max_length(dtype)
    q, k = same_vector(2)
    q, k = (x.astype(dtype).astype(jnp.float64) for x in (q, k))
    i, j = jnp.array([reach - 1, reach], I32), jnp.array([reach - 9, reach], I32)
    both = jax.jit(lambda q, k: (xpos(q, i, 1), xpos(k, j, -1)))
    wanted = np.prod(both(q, k), axis=0)[0].sum()
    a, b = (np.asarray(x.astype(jnp.float64)) for x in both(q.astype(dtype), k.astype(dtype)))
    assert abs(a[0] @ b[0] / wanted - 1) < digits
    assert np.isnan(a[1]).all()
    assert np.isnan(b[1]).all()
    assert reach > {"float16": 2000}.get(dtype, 16384)


def test_alibi_slopes():
    np.testing.assert_allclose(alibi_slopes(8), 2.0 ** -np.arange(1, 9), rtol=1e-12)
    np.testing.assert_allclose(alibi_slopes(2), [2.0**-4, 2.0**-8], rtol=1e-12)
    twelve = [2.0**-n for n in (1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5)]
    np.testing.assert_allclose(alibi_slopes(12), twelve, rtol=1e-12)
    assert [len(alibi_slopes(H)) for H in range(1, 20)] == list(range(1, 20))


def bucket(distance, buckets, furthest, bidirectional):
    """Computes T5's rule for one pair, exactly where the logarithm is an integer, with distance = i − j."""
    offset = 0
    if bidirectional:
        buckets //= 2
        offset, distance = (buckets, -distance) if distance < 0 else (0, distance)
    distance, exact = max(distance, 0), buckets // 2
    if distance < exact:
        return offset + distance
    ratio = math.log(distance / exact) / math.log(furthest / exact) * (buckets - exact)
    return offset + min(exact + int(ratio + 1e-9), buckets - 1)


@pytest.mark.parametrize("settings", [(32, 128, True), (32, 128, False), (8, 20, True), (12, 50, False)])
def test_t5_buckets_are_those_of_its_rule(settings):
    i, j = np.array([0, 150, 400], np.int32), np.arange(0, 400, dtype=np.int32)
    expected = [[bucket(int(a) - int(b), *settings) for b in j] for a in i]
    found = t5_buckets(i, j, *settings)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == I32
    assert {int(found.min()), int(found.max())} == {0, settings[0] - 1}


def test_shaw_terms_equal_sums_over_all_pairs():
    rng = np.random.default_rng(0)
    T, S, K, c = 3, 7, 4, 2
    q, keys, values = rng.normal(size=(T, K)), rng.normal(size=(2 * c + 1, K)), rng.normal(size=(2 * c + 1, 5))
    weights, i, j = rng.random((T, S)), np.array([0, 3, 6], np.int32), np.arange(S, dtype=np.int32)
    rows = clipped(i, j, c)
    scores, mixed = np.zeros((T, S)), np.zeros((T, 5))
    for t in range(T):
        for s in range(S):
            row = min(max(int(j[s] - i[t]), -c), c) + c
            scores[t, s] = q[t] @ keys[row] / 2
            mixed[t] += weights[t, s] * values[row]
    np.testing.assert_allclose(relative_scores(jnp.asarray(q), jnp.asarray(keys), rows), scores, atol=1e-12)
    np.testing.assert_allclose(relative_values(jnp.asarray(weights), jnp.asarray(values), rows), mixed, atol=1e-12)


def test_a_grid_is_in_row_major_order_and_each_half_encodes_one_axis():
    i = jnp.arange(12, dtype=I32)
    p = sinusoidal_2d(i, 8, 4, jnp.float64)
    np.testing.assert_allclose(p[6, :4], sinusoidal(jnp.array([1], I32), 4, jnp.float64)[0], atol=1e-12)
    np.testing.assert_allclose(p[6, 4:], sinusoidal(jnp.array([2], I32), 4, jnp.float64)[0], atol=1e-12)
    q, k = same_vector(12)
    products = np.asarray(rotary_2d(q, i, 4) @ rotary_2d(k, i, 4).T)
    # From (0, 1) to (1, 3) and from (1, 0) to (2, 2): one row down and two columns to the right.
    np.testing.assert_allclose(products[1, 7], products[4, 10], atol=1e-12)
    # The same distance in the sequence, but two rows down and two columns to the left.
    np.testing.assert_allclose(products[2, 8], products[3, 9], atol=1e-12)
    assert abs(products[1, 7] - products[2, 8]) > 1e-3
    np.testing.assert_allclose(jnp.linalg.norm(rotary_2d(q, i, 4), axis=1), jnp.linalg.norm(q, axis=1), atol=1e-12)


def test_a_normalized_grid_equals_that_of_detr():
    """Computes the encoding number by number as DETR does: positions from 1, divided by their count, times 2π."""
    rows, columns, D, half = 3, 4, 8, 4
    found = sinusoidal_2d(jnp.arange(12, dtype=I32), D, columns, jnp.float64, rows)
    for y in range(rows):
        for x in range(columns):
            told = []
            for at, side in ((y, rows), (x, columns)):
                angle = (at + 1) / (side + 1e-6) * 2 * math.pi
                told += [math.sin(angle), math.cos(angle), math.sin(angle / 100), math.cos(angle / 100)]
            assert len(told) == 2 * half
            np.testing.assert_allclose(found[y * columns + x], told, atol=1e-12)
    # The last row and column return to the start, up to the 1e-6.
    np.testing.assert_allclose(found[11, [0, 4]], 0, atol=1e-5)


@pytest.mark.parametrize("halves", [False, True])
def test_rotated_pairs_are_interleaved_or_of_two_halves(halves):
    """Multiplies pairs, as complex numbers, by e^(i θ)."""
    (x,) = np.random.default_rng(0).normal(size=(1, 5, 8))
    found = np.asarray(rotary(jnp.asarray(x), jnp.arange(5, dtype=I32) + 3, 50.0, halves))
    for n in range(4):
        one, other = (n, n + 4) if halves else (2 * n, 2 * n + 1)
        for t in range(5):
            turned = complex(x[t, one], x[t, other]) * cmath.exp(1j * (t + 3) * 50.0 ** (-n / 4))
            np.testing.assert_allclose([found[t, one], found[t, other]], [turned.real, turned.imag], atol=1e-12)


def test_the_differential_equation_is_solved_to_fourth_order():
    # dp/dt = (p_1, −p_0 + t), with p_0 = t − sin t and p_1 = 1 − cos t from the origin.
    flow = lambda t, p: jnp.stack([p[1], t - p[0]])
    errors = []
    for step, length in ((0.2, 11), (0.1, 21)):
        t = np.arange(length) * step
        found = flow_path(flow, jnp.zeros(2), length, step)
        errors.append(np.abs(found - np.stack([t - np.sin(t), 1 - np.cos(t)], axis=1)).max())
    assert errors[0] < 1e-4
    assert 14 < errors[0] / errors[1] < 18
