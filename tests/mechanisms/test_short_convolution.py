"""Checks a short convolution before a mechanism against its sum, token by token in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Linear, ShortConvolution, Softmax
from attnlab.modules.position.rotary import Rotary
from attnlab.ops.mask import Causal
from tests.mechanisms.contract import K, V, attend, causal, causal_back, cut, inputs

pytestmark = pytest.mark.usefixtures("x64")
INNER = {"softmax": Softmax(), "linear": Linear(), **{name: MECHANISMS[name] for name in ("delta", "gated-delta")}}
each = pytest.mark.parametrize("name", INNER)


def convolved(x, kernel, keep, segment):
    """Returns silu of the weighted sum over each kept token and the kept tokens before it in its segment."""
    y = np.zeros_like(x)
    for t in range(len(x)):
        past = [j for j in range(t + 1) if keep[j] and (segment[j:t][keep[j:t]] == segment[t]).all()]
        total = sum(w * x[j] for w, j in zip(kernel, past[::-1], strict=False))
        y[t] = total / (1 + np.exp(-total))
    return y


def packings(T, count):
    """Yields random padding, and short segments whose ids recur."""
    rng = np.random.default_rng(T)
    for _ in range(count):
        yield rng.random(T) < 0.7, np.cumsum(rng.random(T) < 0.25) % 3


def parts(name, T, size=3, seed=0):
    mechanism = ShortConvolution(INNER[name], size)
    q, k, v, extra = inputs(mechanism, T, seed=seed)
    own = {n: x for n, x in extra.items() if not n.startswith("conv_")}
    return mechanism, q, k, v, extra, own


@each
@pytest.mark.parametrize("block", [None, 1, 2, 5])
def test_it_is_the_mechanism_of_convolved_queries_and_keys_with_padding_and_packing(name, block):
    mechanism, q, k, v, extra, own = parts(name, 17)
    for keep, segment in packings(17, 4):
        places = {"keep": jnp.asarray(keep), "segment": jnp.asarray(segment, jnp.int32)}
        told = (convolved(x, extra[kernel], keep, segment) for x, kernel in ((q, "conv_q"), (k, "conv_k")))
        expected = causal(INNER[name], *told, v, **own, **places)
        np.testing.assert_allclose(causal(mechanism, q, k, v, block=block, **extra, **places), expected, atol=1e-10)


@each
def test_attend_causal_is_equal_and_size_one_only_scales(name):
    mechanism, q, k, v, extra, own = parts(name, 9, size=1)
    whole = causal(mechanism, q, k, v, **extra)
    np.testing.assert_allclose(attend(mechanism, q, k, v, Causal(), **extra), whole, atol=1e-12)
    scaled = (x * w / (1 + np.exp(-x * w)) for x, w in ((q, extra["conv_q"][0]), (k, extra["conv_k"][0])))
    np.testing.assert_allclose(causal(INNER[name], *scaled, v, **own), whole, atol=1e-10)


def test_tokens_beyond_the_convolution_width_have_no_effect():
    mechanism, q, k, v, extra, _ = parts("softmax", 9)
    last = np.where(np.arange(9)[:, None] == 8, 1.0, 0.0) * np.ones(V)
    _, (dq, *_) = causal_back(mechanism, last, q, k, v, extra)
    assert np.flatnonzero(np.any(dq, axis=1)).tolist() == [6, 7, 8]


@pytest.mark.parametrize("name", ["softmax", "delta"])
@pytest.mark.parametrize("block", [None, 2])
def test_rotary_positions_rotate_convolved_queries_and_keys(name, block):
    mechanism, q, k, v, extra, own = parts(name, 9)
    i, all_ = np.arange(9, dtype=np.int32), np.ones(9, bool)
    q2, k2 = (convolved(x, extra[kernel], all_, i * 0) for x, kernel in ((q, "conv_q"), (k, "conv_k")))
    expected = causal(INNER[name], *Rotary().rotate(jnp.asarray(q2), jnp.asarray(k2), i, i), v, **own)
    turned = mechanism.with_rotary(Rotary())
    np.testing.assert_allclose(causal(turned, q, k, v, block=block, **extra), expected, atol=1e-10)


def test_rotary_features_are_applied_after_it():
    mechanism, q, k, v, extra, _ = parts("linear", 9)
    turned = mechanism.with_rotary(Rotary())
    assert turned == ShortConvolution(Linear().with_rotary(Rotary()), 3)
    assert np.abs(causal(turned, q, k, v, **extra) - causal(mechanism, q, k, v, **extra)).max() > 1e-3


def test_a_full_cache_of_the_wrapped_mechanism_is_refused():
    mechanism, q, k, v, extra, _ = parts("softmax", 4)
    _, state = mechanism.extend(mechanism.start(3, K, V), q[:3], k[:3], v[:3], **cut(mechanism, extra, slice(3)))
    with pytest.raises(ValueError, match=r"the cache has room for 3 tokens, got 4"):
        mechanism.extend(state, q[3:], k[3:], v[3:], **cut(mechanism, extra, slice(3, 4)))


def test_half_precision_stays_near_the_exact():
    mechanism, q, k, v, extra, _ = parts("softmax", 64, size=4)
    exact = causal(mechanism, q, k, v, **extra)
    half = jax.tree.map(lambda x: jnp.asarray(x, jnp.bfloat16), (q, k, v, extra))
    assert np.abs(np.asarray(causal(mechanism, *half[:3], **half[3]), np.float64) - exact).max() < 0.03


def test_unsupported_wrapped_mechanisms_are_refused():
    with pytest.raises(ValueError, match=r"Nystrom.* cannot decode"):
        ShortConvolution(MECHANISMS["nystrom"])
    with pytest.raises(ValueError, match=r"size=0 must be at least 1$"):
        ShortConvolution(size=0)
