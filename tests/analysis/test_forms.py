import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis import forms, inputs
from tests.analysis.examples import Coarse, Late, Leaky, Mean, Mute, Sum

T = 17


def worst(found):
    return {kind: max((x for x in values.values() if x is not None), default=None) for kind, values in found.items()}


@pytest.fixture(scope="module")
def right():
    return forms.agreement(Sum(), T, 4, 6)


def test_forms_of_one_mechanism_agree_to_rounding(right):
    assert list(right) == list(forms.KINDS)
    assert all(value is not None and value < 1e-12 for value in worst(right).values())


def test_every_form_is_compared_at_one_token_and_at_many(right):
    assert list(right["causal"]) == [
        *("attend", "block None", "block 7", "block 64", f"block {T}"),
        *("attend, T=1", "block None, T=1", "block 7, T=1"),
    ]
    assert list(right["padding"])[1:] == [f"block {b}, {at}" for b in (None, 7) for at in ("before", "between")]


def test_an_off_by_one_error_is_reported_for_its_form():
    found = forms.agreement(Late(), T, 4, 6, ("causal", "extend"))
    assert found["causal"]["block 7"] > 0.1
    assert found["extend"]["in 3 parts"] > 0.1
    assert found["causal"]["block None, T=1"] == 0


def test_a_low_precision_state_is_detected():
    assert worst(forms.agreement(Coarse(), T, 4, 6, ("extend",)))["extend"] > 1e-4


def test_padding_in_the_state_is_detected():
    assert worst(forms.agreement(Leaky(), T, 4, 6, ("padding",)))["padding"] > 0.1


def test_a_missing_form_is_none_and_not_zero(right):
    found = forms.agreement(Mean(), T, 4, 6)
    assert set(found["causal"].values()) == set(found["extend"].values()) == {None}
    assert found["padding"]["attend, after"] < 1e-12
    assert found["vmap/jit"]["attend, vmap"] < 1e-12
    assert found["vmap/jit"]["causal, vmap"] is None
    assert right["padding"]["attend, after"] is None
    assert right["causal"]["attend"] < 1e-12
    assert {x for kind in forms.agreement(Mute(), T, 4, 6).values() for x in kind.values()} == {None}


def test_nan_is_never_agreement():
    assert np.isnan(forms.difference(np.array([1.0, np.nan]), np.zeros(2)))
    assert forms.difference(None, np.zeros(2)) is None
    with pytest.raises(ValueError, match="shapes"):
        forms.difference(np.zeros(2), np.zeros((1, 2)))


def test_a_not_implemented_error_of_jax_is_no_refusal():
    def missing(x):
        return jax.lax.platform_dependent(x, tpu=lambda x: x)

    with pytest.raises(NotImplementedError):
        forms.answer(missing, jnp.ones(2))


@pytest.mark.parametrize("before", [True, False])
def test_the_x64_setting_is_restored(before):
    with jax.enable_x64(before):
        forms.agreement(Sum(), 3, 4, 6, ("extend",))
        assert jax.config.jax_enable_x64 is before


def test_inputs_use_full_precision_and_fit_any_mechanism():
    q, k, v, extra = inputs.draw(Mean(), 5, 4, 6)
    assert (q.shape, k.shape, v.shape, extra["w"].shape) == ((5, 4), (5, 4), (5, 6), (4,))
    assert np.any(q != q.astype(np.float32))
    assert inputs.draw(Sum(), 5, 4, 6, jnp.bfloat16)[0].dtype == jnp.bfloat16
    chosen = inputs.rows(Mean(), (q, k, v, extra), slice(1, 3))
    assert chosen[1].shape == (2, 4)
    assert chosen[3]["w"].shape == (4,)
    dirty = inputs.fill_padding_with_nan(Mean(), (q, k, v, extra), np.arange(5) < 3)
    assert np.isnan(dirty[0][3:]).all()
    assert np.isfinite(dirty[0][:3]).all()
