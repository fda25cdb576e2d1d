import jax
import numpy as np
import pytest

from attnlab.bench.calls import BOTH, FORWARD, by_heads, inputs, prepare, target
from attnlab.mechanisms import MECHANISMS, Softmax
from tests.analysis.examples import Mean, Sum
from tests.bench.stand_ins import attention


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_heads_are_independent_and_the_mask_is_applied(mask):
    q, k, v, extra = inputs(Softmax(), 9, 3, 4)
    assert np.any(q[0] != q[1])
    y = by_heads(Softmax(), mask)(q, k, v, extra)
    np.testing.assert_allclose(y, attention(q, k, v, mask == "causal"), atol=1e-5)


def test_gradients_are_those_of_every_argument():
    program = prepare(Mean(), "full", BOTH, 6, 2, 4)
    y, (dq, dk, dv, extra) = program.answer()
    assert y.shape == dq.shape == dk.shape == dv.shape == (2, 6, 4)
    assert extra["w"].shape == (2, 4)
    assert np.any(extra["w"])
    forward = prepare(Mean(), "full", FORWARD, 6, 2, 4)
    np.testing.assert_allclose(forward.answer(), y, rtol=1e-5)
    assert forward.flops < program.flops


def test_an_unsupported_mask_has_no_program():
    assert prepare(Sum(), "full", FORWARD, 6, 2, 4) is None
    assert prepare(Mean(), "causal", FORWARD, 6, 2, 4) is None
    assert prepare(Sum(), "causal", FORWARD, 6, 2, 4).answer().shape == (2, 6, 4)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_benchmarked(name):
    mechanism = MECHANISMS[name].with_length(16)
    given = inputs(mechanism, 16, 2, 8)
    answered = []
    for mask in ("full", "causal"):
        try:
            answered.append(jax.eval_shape(by_heads(mechanism, mask), *given).shape)
        except NotImplementedError:
            continue
    assert answered
    assert set(answered) == {(2, 16, 8)} == {target(16, 2, 8).shape}
