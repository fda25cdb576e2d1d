"""Checks that a call that cannot be right is refused in one line that names the argument."""

import numpy as np
import pytest

import attnlab
from attnlab.ops.mask import Causal, QueryPadding

Q, Y = np.zeros((2, 5, 4, 8), np.float32), np.zeros((2, 7, 2, 8), np.float32)


@pytest.mark.parametrize(
    ("error", "line", "call"),
    [
        (ValueError, r"mechanism='sofmax' is not known; nearest: 'softmax'", {"mechanism": "sofmax"}),
        (TypeError, r"expected a mechanism or its name, for example 'softmax', got 3", {"mechanism": 3}),
        (TypeError, r"^is_causal is not known; use causal=True$", {"is_causal": True}),
        (TypeError, r"^causal must be True or False, got ndarray; pass .* mask=$", {"causal": np.ones((5, 7), bool)}),
        (
            NotImplementedError,
            r"GatedLinear.* only attends causally; pass causal=True$",
            {"mechanism": "gated-linear", "gate": Y},
        ),
        (TypeError, r"GatedLinear.* is missing inputs gate \(2, 7, 2, 8\)$", {"mechanism": "gated-linear"}),
        (TypeError, r"missing inputs sink \(2,\); initial values: jax.vmap\(lambda", {"mechanism": "softmax-sink"}),
        (TypeError, r"Softmax.* got unexpected inputs gate; expected: none", {"gate": Y}),
        (
            ValueError,
            r"gate must have shape \(2, 7, 2, 8\), got \(2, 5, 4, 8\)",
            {"mechanism": "gated-linear", "gate": Q},
        ),
        (TypeError, r"mask must be a boolean array or a mask; add scores as bias, got .* float32", {"mask": Q}),
        (
            TypeError,
            r"expected a mask, got the class Causal: write Causal\(\)",
            {"mask": Causal},
        ),
        (TypeError, r"bias must be an array of floats or a function bias\(q, i, j\), got .* int", {"bias": [[1]]}),
        (
            ValueError,
            r"mask must have one of the shapes \(5, 7\), \(2, 5, 7\), \(2, 4, 5, 7\), got \(3, 5, 7\)",
            {"mask": np.ones((3, 5, 7), bool)},
        ),
        (ValueError, r"keep must have shape \(2, 7\), got \(2, 5\)", {"keep": np.ones((2, 5), bool)}),
        (ValueError, r"segment_ids must have shape \(2, 5\), got \(2, 7\)", {"segment_ids": np.ones((2, 7), int)}),
        (
            ValueError,
            r"segment_ids\[1\] must have shape \(2, 7\), got \(2, 5\)",
            {"segment_ids": (np.ones((2, 5), int), np.ones((2, 5), int))},
        ),
        (ValueError, r"segment_ids must be .* a pair of arrays, got a tuple of 3", {"segment_ids": (0, 0, 1)}),
        (TypeError, r"segment_ids must be an array of integers, got float32", {"segment_ids": np.ones((2, 5), "f")}),
        (TypeError, r"Softmax.* got unexpected inputs window; expected: none", {"window": 2}),
        (ValueError, r"pass query_keep with keep", {"mechanism": "nystrom", "keep": np.ones((2, 7), bool)}),
        (ValueError, r"looks up rows, but T=5 and S=7", {"mask": QueryPadding(np.ones(5, bool))}),
        (
            NotImplementedError,
            r"Delta.* got T=5 and S=7; to continue",
            {"mechanism": "delta", "causal": True, "beta": Y[..., 0]},
        ),
        (NotImplementedError, r"Linear.* does not support a bias", {"mechanism": "linear", "bias": np.zeros((5, 7))}),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(error, line, call):
    with pytest.raises(error, match=line) as refused:
        attnlab.attention(Q, Y, Y, **call)
    assert "\n" not in str(refused.value)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"expected q \[B T H K\].*, got shapes \(2, 5, 4, 8\), \(7, 2, 8\), "):
        attnlab.attention(Q, Y[0], Y[0])
    with pytest.raises(ValueError, match=r"key_heads=3 must divide heads=4"):
        attnlab.attention(Q, Y.repeat(3, axis=2)[:, :, :3], Y.repeat(3, axis=2)[:, :, :3])
    with pytest.raises(ValueError, match=r"k must have shape \(2, 7, 2, 8\), got \(2, 7, 2, 4\)"):
        attnlab.attention(Q, Y[..., :4], Y)
    cache = attnlab.init_cache("linear", 2, 7, 4, 8)
    line = r"the cache is for T new tokens q \[2 T 4 8\], k \[2 T 4 8\] and v \[2 T 4 8\], got q \(2, 5, 4, 8\)"
    with pytest.raises(ValueError, match=line):
        attnlab.decode_step(cache, Q, Y, Y)
    for sizes, line in (
        ((2, 0, 4, 8), "length"),
        ((0, 7, 4, 8), "batch"),
        ((2, 7, 0, 8), "heads"),
        ((2, 7, 4, 0), "width"),
    ):
        with pytest.raises(ValueError, match=f"^{line}=0 must be at least 1$"):
            attnlab.init_cache("linear", *sizes)
    with pytest.raises(NotImplementedError, match="has no causal form and cannot decode"):
        attnlab.init_cache("nystrom", 2, 7, 4, 8)
    with pytest.raises(ValueError, match="key_heads=3 must divide heads=4"):
        attnlab.init_cache("softmax", 2, 7, 4, 8, key_heads=3)


def test_arrays_of_integers_are_refused():
    with pytest.raises(TypeError, match=r"^k must be an array of floats, got int32$"):
        attnlab.attention(Q, Y.astype(np.int32), Y)
    with pytest.raises(TypeError, match=r"^gate must be an array of floats, got int32$"):
        attnlab.attention(Q, Y, Y, "gated-linear", gate=Y.astype(np.int32))


@pytest.mark.parametrize("dtype", ["int8", np.int32, bool, np.complex64])
def test_a_cache_that_would_round_keys_is_refused(dtype):
    for name in ("softmax", "linear"):
        with pytest.raises(TypeError, match=r"^the dtype of a cache must be a floating-point dtype, got "):
            attnlab.init_cache(name, 2, 7, 4, 8, dtype=dtype)
