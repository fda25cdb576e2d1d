"""Checks whole layers and models as functions of named arrays, with which other libraries are compared."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from attnlab.bench.peer_parity.comparison import compare, expected
from attnlab.bench.peer_parity.evaluation import evaluate_in_jax
from attnlab.bench.peer_parity.layers import LanguageSubject, LayerSubject
from attnlab.bench.peer_parity.transformers_layers import by_head, convolution, linear, turned_round
from attnlab.bench.peer_parity.transformers_softmax import FUNCTIONS
from attnlab.models.published import PUBLISHED, TransformerPlusPlus
from attnlab.modules.multi_head import MultiHead

SMALL = {"B": 2, "T": 6}
SUBJECTS = [
    LayerSubject("layer", TransformerPlusPlus(width=8, heads=2, attention=MultiHead(qk_norm="head")), **SMALL),
    LanguageSubject("model", TransformerPlusPlus(width=8, heads=2, layers=1), vocabulary=5, **SMALL),
]


@pytest.mark.parametrize("ours", SUBJECTS, ids=lambda each: each.name)
def test_a_module_is_the_same_whole_and_token_by_token_and_every_parameter_has_a_gradient(ours):
    whole = expected(ours, ours.forms()["whole"], "whole", "float64")
    steps = expected(ours, ours.forms()["steps"], "steps", "float64")
    np.testing.assert_allclose(steps.output, whole.output, rtol=1e-10, atol=1e-12)
    assert set(whole.gradients) == {name for name, x in whole.arrays.items() if x.dtype.kind == "f"}
    assert all(np.any(gradient) for gradient in whole.gradients.values())


def test_padding_before_a_sequence_changes_nothing():
    ours = SUBJECTS[0]
    padded, whole = ours.inputs("padded"), ours.inputs("whole")
    assert padded["keep"].sum(1).tolist() == [6, 4]
    whole["x"] = np.concatenate([padded["x"][:, 2:], padded["x"][:, :2]], axis=1)
    run = ours.forms()["whole"]
    np.testing.assert_allclose(
        evaluate_in_jax(run, padded, None)[0][1, 2:], evaluate_in_jax(run, whole, None)[0][1, :4], rtol=1e-10
    )


def test_the_attention_of_a_layer_is_that_of_the_pattern():
    layers = [LayerSubject("", PUBLISHED["qwen3-next"], layer=n).create() for n in (0, 3)]
    assert [type(layer.mechanism).__name__ for layer in layers] == ["GatedDelta", "Softmax"]


def test_offsets_are_added_to_parameters():
    ours = SUBJECTS[0]
    moved = replace(ours, offsets={"q_norm.scale": 2.0})
    np.testing.assert_allclose(moved.inputs("whole")["q_norm.scale"], ours.inputs("whole")["q_norm.scale"] + 2)


def test_weights_in_the_order_of_torch():
    torch = pytest.importorskip("torch")
    one, two = np.arange(8.0).reshape(2, 4), 10 + np.arange(8.0).reshape(2, 4)
    x = {"a.w": torch.tensor(one), "b.w": torch.tensor(two), "convolution.w": torch.tensor(one)}
    np.testing.assert_array_equal(linear(x, "a", "b"), np.concatenate([one, two], 1).T)
    heads = [one[:, :2], two[:, :2], one[:, 2:], two[:, 2:]]
    np.testing.assert_array_equal(by_head(x, 2, "a", "b"), np.concatenate(heads, 1).T)
    np.testing.assert_array_equal(convolution(x)[:, 0], [[4, 0], [5, 1], [6, 2], [7, 3]])
    np.testing.assert_array_equal(turned_round(torch.arange(4), [1, 3]), [1, 2, 3, 0])


@pytest.mark.slow
def test_a_wrong_norm_is_found():
    pytest.importorskip("transformers")
    (peer,) = [each for each in FUNCTIONS if each.ours.name == "qwen3-next:softmax layer"]
    other = replace(peer.ours, config=replace(peer.ours.config, norm_eps=2e-2))
    (result,) = compare([replace(peer, ours=other)])
    assert result.exceeded == ["whole", "padded", "steps"]
    assert jax.config.jax_enable_x64 is False
