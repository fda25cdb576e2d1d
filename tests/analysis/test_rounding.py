import jax
import pytest

from attnlab.analysis import rounding
from attnlab.mechanisms import Softmax
from tests.analysis.examples import Mean, Mute, Narrow, Sum


@pytest.mark.parametrize("mechanism", [Softmax(), Sum(), Mean()], ids=lambda mechanism: type(mechanism).__name__)
def test_errors_agree_with_the_digits_of_each_precision(mechanism):
    found = rounding.errors(mechanism, 64, 8, 8)
    for dtype, digits in {"float32": 2**-24, "bfloat16": 2**-9, "float16": 2**-12}.items():
        for error in found[dtype].values():
            assert error is None or digits / 100 < error < 20 * digits


def test_an_unsupported_mask_gives_none():
    assert rounding.errors(Sum(), 16, 8, 8)["float32"]["full"] is None
    assert rounding.errors(Mean(), 16, 8, 8)["float32"]["causal"] is None
    assert rounding.errors(Mute(), 16, 8, 8)["float32"] == {"full": None, "causal": None}


def test_a_state_in_the_precision_of_its_inputs_is_detected():
    good, bad = (rounding.errors(mechanism, 256, 4, 4)["bfloat16"]["causal"] for mechanism in (Sum(), Narrow()))
    assert bad > 1.5e-2 > 3 * good


def test_an_output_in_another_precision_is_an_error():
    class Widening(Mean):
        def attend_all(self, *arguments, **extra):
            return super().attend_all(*arguments, **extra).astype("float32")

    with pytest.raises(TypeError, match="expected an output of dtype bfloat16, like the values, got float32"):
        rounding.errors(Widening(), 16, 8, 8)


def test_the_x64_setting_is_restored():
    rounding.errors(Mean(), 4, 4, 4)
    assert jax.config.jax_enable_x64 is False
