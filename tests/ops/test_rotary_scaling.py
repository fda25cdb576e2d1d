"""Checks scaled frequencies of rotary positions against the papers' formulas and the numbers of transformers 5.24."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.position import SCALINGS, LinearScaling, Llama3Scaling, YarnScaling, frequencies, rotary

pytestmark = pytest.mark.usefixtures("x64")


def linear(n, K, base, s):
    return base ** (-2 * n / K) / s.factor


def yarn(n, K, base, s):
    """Computes equation 20 for one pair, with the share by the number of the pair, as in the authors' code."""
    turns = lambda rotations: K * math.log(s.original_length / (rotations * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(math.floor(turns(s.beta_fast)), 0), min(math.ceil(turns(s.beta_slow)), K - 1)
    gamma = 1 - min(max((n - low) / (high - low if high > low else 0.001), 0), 1)
    f = base ** (-2 * n / K)
    return (1 - gamma) * f / s.factor + gamma * f


def llama3(n, K, base, s):
    """Computes the three cases by wavelength."""
    f = base ** (-2 * n / K)
    wavelength = 2 * math.pi / f
    if wavelength < s.original_length / s.high_frequency:
        return f
    if wavelength > s.original_length / s.low_frequency:
        return f / s.factor
    smooth = (s.original_length / wavelength - s.low_frequency) / (s.high_frequency - s.low_frequency)
    return (1 - smooth) * f / s.factor + smooth * f


CASES = [
    (linear, LinearScaling(3.0), 16, 1e4),
    (yarn, YarnScaling(), 64, 1e4),
    (yarn, YarnScaling(8.0, 1024, 16.0, 2.0), 32, 1e6),
    (yarn, YarnScaling(4.0, 8), 4, 100.0),  # no pair rotates more than once
    (llama3, Llama3Scaling(), 64, 5e5),
    (llama3, Llama3Scaling(2.0, 1024, 2.0, 8.0), 32, 1e4),
]


@pytest.mark.parametrize(("formula", "scaling", "K", "base"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_frequencies_are_the_formula_pair_by_pair(formula, scaling, K, base):
    found = scaling.scale(frequencies(K, base, jnp.float64), base)
    np.testing.assert_allclose(found, [formula(n, K, base, scaling) for n in range(K // 2)], rtol=1e-12)


# Every second frequency, and the attention factor, of ROPE_INIT_FUNCTIONS, computed there in float32.
PUBLISHED = [
    (YarnScaling(4.0, 2048), 32, 1e4, 1.138629436111989,
     [1.0, 0.3162278, 0.1, 0.02484647, 0.005714286, 0.001129385, 0.00025, 7.905695e-05]),
    (Llama3Scaling(8.0, 8192, 1.0, 4.0), 32, 5e5, 1.0,
     [1.0, 0.1939228, 0.03760603, 0.007292665, 0.000524846, 3.428102e-05, 6.64787e-06, 1.289173e-06]),
    (YarnScaling(4.0, 32768, 16.0, 2.0, 1.5), 64, 1e6, 1.5,
     [1.0, 0.4216965, 0.1778279, 0.07498942, 0.03162278, 0.01333521, 0.005623413, 0.002074952, 0.000625, 0.0001581362,
      4.445699e-05, 1.874736e-05, 7.905694e-06, 3.333804e-06, 1.405853e-06, 5.928434e-07]),
]  # fmt: skip


@pytest.mark.parametrize(("scaling", "K", "base", "multiplier", "expected"), PUBLISHED, ids=["yarn", "llama3", "set"])
def test_frequencies_are_those_of_transformers(scaling, K, base, multiplier, expected):
    np.testing.assert_allclose(scaling.scale(frequencies(K, base, jnp.float64), base)[::2], expected, rtol=1e-6)
    assert scaling.multiplier == pytest.approx(multiplier, rel=1e-12)


@pytest.mark.parametrize("scaling", [None, *SCALINGS.values()], ids=["none", *SCALINGS])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("size", [None, 4])
def test_rows_are_rotated_pair_by_pair(scaling, halves, size):
    x, K, base = np.random.default_rng(0).standard_normal((3, 12)), size or 12, 50.0
    formulas = {"LinearScaling": linear, "YarnScaling": yarn, "Llama3Scaling": llama3}
    expected = x.copy()
    for t in range(3):
        for n in range(K // 2):
            a, b = (n, n + K // 2) if halves else (2 * n, 2 * n + 1)
            f = base ** (-2 * n / K) if scaling is None else formulas[type(scaling).__name__](n, K, base, scaling)
            z = (x[t, a] + 1j * x[t, b]) * np.exp(1j * (t + 5) * f) * (scaling.multiplier if scaling else 1)
            expected[t, a], expected[t, b] = z.real, z.imag
    at = jnp.arange(3, dtype=jnp.int32) + 5
    found = rotary(jnp.asarray(x), at, base, halves, size, scaling)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=SCALINGS)
def test_a_factor_of_one_changes_nothing(scaling):
    same = type(scaling)(1.0)
    f = frequencies(16, 1e4, jnp.float64)
    np.testing.assert_allclose(same.scale(f, 1e4), f, rtol=1e-14)
    assert same.multiplier == 1


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: LinearScaling(0.5), "factor=0.5 must be at least 1"),
        (lambda: Llama3Scaling(float("nan")), "factor=nan must be above 0 and finite"),
        (lambda: YarnScaling(original_length=0), "original_length=0 must be at least 1"),
        (lambda: YarnScaling(beta_slow=32.0), "beta_slow=32.0 must be below beta_fast=32.0"),
        (lambda: YarnScaling(attention_factor=0.0), "attention_factor=0.0 must be above 0 and finite"),
        (lambda: Llama3Scaling(low_frequency=5.0), "low_frequency=5.0 must be below high_frequency=4.0"),
        (lambda: Llama3Scaling(low_frequency=-1.0), "low_frequency=-1.0 must be above 0 and finite"),
    ],
)
def test_values_that_cannot_be_are_refused_in_one_line(make, complaint):
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        make()
