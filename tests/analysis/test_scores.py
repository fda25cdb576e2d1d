"""Checks that the softmax of the scores inside a model is its attention map."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.analysis.scores import call_scores, scores, softmax
from attnlab.mechanisms import MECHANISMS, Linear, ShortConvolution, Softmax, weights
from attnlab.mechanisms.window import Local
from attnlab.models import Classifier
from attnlab.models.seq2seq import Seq2Seq
from attnlab.modules.position import POSITIONS, Position, Rotary
from attnlab.ops.mask import Causal, Full, KeyPadding
from attnlab.ops.score import cosine, location
from attnlab.tasks.base.shapes import Classes, Pairs, Tokens
from tests.analysis.filled import filled
from tests.mechanisms.contract import inputs

PAIRS = Pairs(9, 9, 6, 5)
SOURCE, TARGET = np.array([3, 4, 5, 6, 0, 0], np.int32), np.array([1, 4, 5, 0, 0], np.int32)
PAIR = (SOURCE, TARGET, SOURCE != 0, TARGET != 0)


def look(mechanism, q, k, mask=Full(), **given):
    """Returns the scores of a compiled call."""
    return np.asarray(jax.jit(lambda q, k, given: call_scores(mechanism, q, k, mask, **given))(q, k, given))


def test_softmax_of_scores_equals_the_attention_map():
    config = Seq2Seq(width=4, attention="bahdanau", cell="rnn")
    model = filled(config, PAIRS)
    scored, drawn = (seen(model, *PAIR)["cross"] for seen in (scores, attention_maps))
    np.testing.assert_allclose(softmax(scored)[:, :, :3, :4], drawn[:, :, :3, :4], atol=1e-6)
    # Only pairs with padding are masked.
    assert np.isneginf(scored[:, :, 3:]).all()
    assert np.isneginf(scored[:, :, :, 4:]).all()
    assert np.isfinite(scored[:, :, :3, :4]).all()


def test_the_class_token_is_first_and_attends_to_kept_tokens():
    config, shape = Classifier(width=4, heads=1, layers=1, pool="token"), Classes(Tokens(9, 6), 3)
    inputs = filled(config, shape), SOURCE, SOURCE != 0
    scored, drawn = (seen(*inputs)["encoder"] for seen in (scores, attention_maps))
    np.testing.assert_allclose(softmax(scored), drawn, atol=1e-6)
    kept = np.append(True, SOURCE != 0)
    np.testing.assert_array_equal(np.isfinite(scored[0, 0]), kept[:, None] & kept)


@pytest.mark.parametrize(
    ("mechanism", "position"),
    [
        (Softmax(score=cosine), "none"),
        (Softmax(block=2), "alibi"),
        (Softmax(softcap=0.5), "alibi"),
        (ShortConvolution(Softmax(), 2), "alibi"),
        (ShortConvolution(Softmax(), 3).with_rotary(Rotary()), "none"),
    ],
    ids=["cosine", "alibi", "capped", "convolved", "convolved-turned"],
)
def test_softmax_of_the_scores_of_a_call_equals_its_map(mechanism, position):
    q, k, _, extra = inputs(mechanism, 5)
    bias = jax.tree.map(lambda leaf: leaf[1], POSITIONS[position].bias(2))
    given = {"bias": bias, "keep": np.array([True, False, True, True, True]), **extra}
    found = jax.jit(lambda q, k, **given: softmax(call_scores(mechanism, q, k, Causal(), **given)))
    expected = jax.jit(lambda q, k, **given: weights(mechanism, q, k, Causal(), **given))
    np.testing.assert_allclose(found(q, k, **given), expected(q, k, **given), atol=1e-6)


def test_scores_of_another_mechanism_are_those_of_softmax():
    q, k, _, _ = inputs(Linear(), 4)
    one, other = (look(mechanism, q, k) for mechanism in (Linear(), Softmax()))
    np.testing.assert_array_equal(one, other)


def test_scores_with_rotary_positions_are_those_of_softmax():
    shape = Classes(Tokens(9, 6), 3)
    configs = [Classifier(width=8, heads=2, layers=1, mechanism=m, position=Rotary()) for m in (Linear(), Softmax())]
    one, other = (scores(filled(config, shape), SOURCE, SOURCE != 0)["encoder"] for config in configs)
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert np.isfinite(np.asarray(other)[:, :, :4, :4]).all()
    plain = scores(filled(replace(configs[0], position=Position()), shape), SOURCE, SOURCE != 0)["encoder"]
    assert np.abs(one - plain)[np.isfinite(one)].max() > 1e-3


def test_a_window_is_no_part_of_the_mask():
    q, k, _, _ = inputs(Softmax(), 6)
    found, allowed = look(Local(2, 1), q, k, Causal()), np.tril(np.ones((6, 6), bool))
    np.testing.assert_allclose(found, np.where(allowed, q @ k.T / 2, -np.inf), rtol=1e-5)


def test_masked_scores_are_minus_infinity():
    q, k, _, _ = inputs(Softmax(), 4)
    keep = np.array([True, True, False, True])
    found = look(Linear(), q, k, Causal(), keep=keep)
    np.testing.assert_array_equal(np.isneginf(found), ~(np.tril(np.ones((4, 4), bool)) & keep[:, None] & keep))
    fewer = look(Softmax(), q[:2], k, KeyPadding(keep) & Causal())
    # If there are fewer queries than keys, they are the last tokens.
    np.testing.assert_array_equal(np.isneginf(fewer), ~(np.tril(np.ones((4, 4), bool))[2:] & keep))


def test_a_mechanism_without_keys_has_no_scores():
    mechanism = MECHANISMS["synthesizer"].with_length(4)
    q, k, _, extra = inputs(mechanism, 4)
    found = look(mechanism, q, k, Causal(), **extra)
    np.testing.assert_array_equal(np.isnan(found), np.tril(np.ones((4, 4), bool)))
    assert np.isneginf(found[0, 1:]).all()


def test_a_score_with_parameters_per_position_is_used():
    mechanism = Softmax(score=location, length=9)
    q, k, _, extra = inputs(mechanism, 4)
    at = np.arange(2, 6, dtype=np.int32)
    expected = jax.jit(lambda q, k, **extra: weights(mechanism, q, k, i=at, j=at, **extra))(q, k, **extra)
    np.testing.assert_allclose(softmax(look(mechanism, q, k, i=at, j=at, **extra)), expected, rtol=1e-5)
