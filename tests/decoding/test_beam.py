from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.decoding import Beam, DecodeProblem, Greedy

from . import toy

SEEDS = st.integers(0, 2**32 - 1)
ALL = sum(map(len, toy.texts()))


def enumerated(table, penalty):
    """Returns all texts with their scores, finished texts first."""
    score = lambda text: toy.total(table, text) / toy.norm(len(text), penalty)
    return [(text, score(text)) for group in toy.texts() for text in sorted(group, key=score, reverse=True)]


def searched(table, beam):
    """Runs a beam search with lists of (text, score), without early stopping."""
    live, finished = [((), 0.0)], []
    for n in range(1, toy.LENGTH + 1):
        symbols = (toy.END, *toy.ORDINARY)
        grown = [((*text, s), score + toy.logs(table, text)[s]) for text, score in live for s in symbols]
        grown.sort(key=lambda one: -one[1])
        finished += [(text, score / toy.norm(n, beam.penalty)) for text, score in grown[: beam.size] if toy.END in text]
        live = [one for one in grown if toy.END not in one[0]][: beam.size]
    unfinished = [(text, score / toy.norm(toy.LENGTH, beam.penalty)) for text, score in live]
    return (sorted(finished, key=lambda one: -one[1]) + unfinished)[: beam.best]


def assert_answers(decoded, expected):
    assert [toy.row(tokens) for tokens in decoded.tokens] == [text for text, _ in expected]
    np.testing.assert_allclose(decoded.scores, [score for _, score in expected], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@settings(max_examples=8)
@given(SEEDS)
def test_a_beam_as_wide_as_the_search_space_finds_the_best(penalty, seed):
    table = toy.drawn(seed)
    assert_answers(toy.decode(Beam(ALL, penalty, best=4), table), enumerated(table, penalty)[:4])


def test_unfinished_sequences_follow_finished_ones_and_empty_rows_come_last():
    table = toy.drawn(0)
    table[:, toy.END] -= 9  # makes unfinished texts more likely
    decoded, expected = toy.decode(Beam(ALL + 2, best=ALL + 2), table), enumerated(table, 1.0)
    assert_answers(decoded._replace(tokens=decoded.tokens[:-2], scores=decoded.scores[:-2]), expected)
    assert max(score for text, score in expected if toy.END not in text) > expected[0][1]
    assert len(set(map(tuple, decoded.tokens[:-2].tolist()))) == ALL
    np.testing.assert_array_equal(decoded.tokens[-2:], np.full((2, toy.LENGTH), toy.PAD))
    assert np.isneginf(decoded.scores[-2:]).all()


@pytest.mark.parametrize("beam", [Beam(2, 0.0), Beam(2, 1.0, best=2), Beam(3, 2.0, best=2), Beam(3, 0.6)], ids=str)
@settings(max_examples=40)
@given(seed=SEEDS, scale=st.sampled_from([0.5, 1.5, 4.0]))
def test_a_narrow_beam_equals_the_reference_without_early_stopping(beam, seed, scale):
    table = toy.drawn(seed, scale=scale)
    assert_answers(toy.decode(beam, table), searched(table, beam))


@settings(max_examples=40)
@given(seed=SEEDS, bias=st.sampled_from([-9.0, 0.0, 1.0]))
def test_a_beam_of_one_without_a_penalty_is_greedy(seed, bias):
    table = toy.drawn(seed)
    table[:, toy.END] += bias
    one, greedy = (toy.decode(way, table) for way in (Beam(1, 0.0), Greedy()))
    np.testing.assert_array_equal(one.tokens, greedy.tokens)
    np.testing.assert_allclose(one.scores, greedy.scores, atol=1e-5)


def test_a_beam_of_one_is_greedy_with_equal_scores_and_rounded_sums():
    # The second is greater by 2⁻²⁴ of 1. The difference is lost if log-probabilities of −9 are added up.
    for pair in ([1.0, 1.0], [1.0 - 2**-24, 1.0]):
        table = np.tile(np.float32([10, 10, -9, *pair]), (toy.SYMBOLS**toy.LENGTH, 1))
        one, greedy = (toy.decode(way, table) for way in (Beam(1, 0.0), Greedy()))
        np.testing.assert_array_equal(one.tokens, greedy.tokens)
        assert set(greedy.tokens[0].tolist()) == {3 + int(np.argmax(np.float32(pair)))}


@partial(jax.jit, static_argnums=0)
def ending(beam, limit):
    """Decodes with a model that ends with probability 0.9 at each step, and returns NaN from token `limit` on."""
    chances = jnp.log(jnp.array([1e-9, 1e-9, 0.9, 0.06, 0.04]))
    step = lambda n, token: (jnp.where(n < limit, chances, jnp.nan), n + 1)
    return beam.search(DecodeProblem(step, jnp.int32(0), 1, 2, 5))


def test_it_stops_when_no_live_hypothesis_can_win():
    tokens, scores = ending(Beam(3, 0.0), 1)
    np.testing.assert_array_equal(tokens, [[2, 0, 0, 0, 0]])
    np.testing.assert_allclose(scores, [np.log(0.9)], rtol=1e-5)
    # A second answer needs a second step: [3, end] has log 0.054, and [3, 3] cannot overtake it.
    two = Beam(3, 0.0, best=2)
    np.testing.assert_array_equal(ending(two, 2).tokens, [[2, 0, 0, 0, 0], [3, 2, 0, 0, 0]])
    assert np.isfinite(ending(two, 2).scores).all()
    assert np.isnan(ending(two, 1).scores).all()


@partial(jax.jit, static_argnums=0)
def delaying(beam, limit):
    """Decodes with a model of two texts: [end] at log 0.5, and [3, 3, 3, 3, end] at log 0.4, decided in the first step.

    The model returns NaN from token `limit` on.
    """
    first, then, last = (
        jnp.log(jnp.array(row)) for row in ([0, 0, 0.5, 0.4, 0.1], [0, 0, 0, 1.0, 0], [0, 0, 1.0, 0, 0])
    )
    scores = lambda n: jnp.where(n == 0, first, jnp.where(n < 4, then, last))
    step = lambda n, token: (jnp.where(n < limit, scores(n), jnp.nan), n + 1)
    return beam.search(DecodeProblem(step, jnp.int32(0), 1, 2, 5))


def test_a_longer_text_overtakes_where_the_penalty_lets_it():
    # The penalties of 1 and 2 tokens are 1 and 7/6. With either of them [end] beats log 0.4, but not with 10/6, that of
    # 5 tokens.
    tokens, scores = delaying(Beam(2, 1.0), 5)
    np.testing.assert_array_equal(tokens, [[3, 3, 3, 3, 2]])
    np.testing.assert_allclose(scores, [np.log(0.4) * 6 / 10], rtol=1e-5)
    # If the model fails, it is unknown what would have overtaken. Without a penalty, nothing could have.
    assert np.isnan(delaying(Beam(2, 1.0), 3).scores).all()
    tokens, scores = delaying(Beam(2, 0.0), 1)
    np.testing.assert_array_equal(tokens, [[2, 0, 0, 0, 0]])
    np.testing.assert_allclose(scores, [np.log(0.5)], rtol=1e-5)


def test_what_other_examples_of_a_batch_still_decode_changes_none_that_has_ended():
    """One example ends after one token, and its model returns NaN from then on. The other example takes five tokens."""
    quick, late = jnp.log(jnp.array([1e-9, 1e-9, 0.9, 0.06, 0.04])), jnp.log(jnp.array([0, 0, 1e-9, 0.6, 0.4]))
    beam = Beam(3, 0.0)

    @jax.jit
    def decode(quickly):
        scores = lambda n: jnp.where(quickly, jnp.where(n < 1, quick, jnp.nan), jnp.where(n < 4, late, quick))
        return beam.search(DecodeProblem(lambda n, token: (scores(n), n + 1), jnp.int32(0), 1, 2, 5))

    together = jax.vmap(decode)(jnp.array([True, False]))
    for n, quickly in enumerate((True, False)):
        alone = decode(quickly)
        np.testing.assert_array_equal(together.tokens[n], alone.tokens)
        np.testing.assert_allclose(together.scores[n], alone.scores, rtol=1e-6)
    np.testing.assert_array_equal(together.tokens[0], [[2, 0, 0, 0, 0]])
    np.testing.assert_allclose(together.scores[0], [np.log(0.9)], rtol=1e-5)
    assert (together.tokens[1] > 2).sum() == 4


def test_float64_scores_are_accepted(x64):
    table = toy.drawn(3)
    wide, narrow = (toy.decode(Beam(3, best=2), table.astype(dtype)) for dtype in ("float64", "float32"))
    np.testing.assert_array_equal(wide.tokens, narrow.tokens)
    assert wide.scores.dtype == jnp.float32


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"size": 0}, "size=0 must be at least 1"),
        ({"best": 0}, "best=0 must be at least 1"),
        ({"size": 2.5}, "size=2.5 must be at least 1 and a whole number"),
        ({"size": 3, "best": 4}, "best=4 must be at most size=3"),
        ({"penalty": -0.1}, "penalty=-0.1 must be at least 0 and at most 10"),
        ({"penalty": float("nan")}, "penalty=nan must be"),
        ({"penalty": float("inf")}, "penalty=inf must be"),
    ],
)
def test_invalid_fields_are_refused(fields, line):
    with pytest.raises(ValueError, match=line):
        replace(Beam(), **fields)
