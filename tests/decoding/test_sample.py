from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from attnlab.decoding import DecodeProblem, Greedy, Sample

from . import toy

DRAWS, LENGTH = 4096, 3


def chances(scores, way):
    """Returns the expected probability of each symbol, [SYMBOLS], from the scores of all symbols."""
    p = np.exp(scores / way.temperature)
    p[[toy.BEGIN, toy.PAD]] = 0
    order = sorted(range(len(p)), key=lambda symbol: -p[symbol])
    p[order[way.top_k :] if way.top_k else []] = 0
    p /= p.sum()
    if way.top_p:
        count = next(n for n in range(1, len(p) + 1) if n == len(p) or p[order[:n]].sum() >= way.top_p)
        p[order[count:]] = 0
    return p / p.sum()


def likelihood(table, text, way):
    return np.prod([chances(toy.scores(table, text[:n]), way)[symbol] for n, symbol in enumerate(text)])


@pytest.mark.parametrize(
    "way",
    [
        Sample(best=DRAWS),
        Sample(best=DRAWS, temperature=0.5),
        Sample(best=DRAWS, top_k=2),
        Sample(best=DRAWS, temperature=2.0, top_p=0.7),
        Sample(best=DRAWS, top_k=2, top_p=0.6),
    ],
    ids=str,
)
def test_sequences_are_drawn_with_their_probability(way):
    table = toy.drawn(5, LENGTH)
    decoded = toy.decode(way, table, LENGTH, jax.random.key(1))
    found = [toy.row(tokens) for tokens in decoded.tokens]
    expected = {text: likelihood(table, text, way) for group in toy.texts(LENGTH) for text in group}
    expected = {text: DRAWS * p for text, p in expected.items() if p > 0}
    np.testing.assert_allclose(sum(expected.values()), DRAWS)
    assert set(found) <= set(expected)
    assert set(found) >= {text for text, count in expected.items() if count > 20}
    counts = np.array([[found.count(text), count] for text, count in expected.items()])
    rare = counts[:, 1] < 5
    counts = np.vstack([counts[~rare], counts[rare].sum(axis=0)] if rare.any() else [counts])
    assert chisquare(*counts.T).pvalue > 1e-3


@pytest.mark.parametrize(
    ("fields", "support"),
    [
        ({}, {2, 3, 4, 5}),
        ({"top_k": 1}, {4}),
        ({"top_k": 3}, {4, 2, 3}),
        ({"top_k": 99}, {2, 3, 4, 5}),
        ({"top_p": 0.4}, {4}),
        ({"top_p": 0.5}, {4}),  # probabilities are 4, 2, 1, 1 of eight parts: the first alone reaches half
        ({"top_p": 0.51}, {4, 2}),
        ({"top_p": 0.76}, {4, 2, 3}),
        ({"top_p": 1.0}, {2, 3, 4, 5}),
        ({"top_p": 1e-60}, {4}),
        ({"top_k": 2, "top_p": 0.6}, {4}),  # of the six remaining parts
        ({"top_k": 2, "top_p": 0.7}, {4, 2}),
        ({"temperature": 1e-60}, {4}),
        ({"temperature": 1e30, "top_k": 2}, {4, 2}),
    ],
    ids=str,
)
def test_only_truncated_symbols_are_never_drawn(fields, support):
    likely = jnp.log(jnp.array([99.0, 99.0, 2.0, 1.0, 4.0, 1.0]))
    problem = DecodeProblem(lambda n, token: (likely, n), jnp.int32(0), 1, 2, 1)
    tokens, _ = Sample(best=256, **fields).search(problem, jax.random.key(0))
    assert set(tokens.ravel().tolist()) == support


@pytest.mark.parametrize("way", [Sample(temperature=1e-6), Sample(temperature=1e-60), Sample(9.0, top_k=1)], ids=str)
def test_a_temperature_near_zero_is_greedy(way):
    for seed in range(5):
        # Scores so large that they overflow when divided by a small temperature.
        table = toy.drawn(seed, scale=6.0)
        cold, greedy = (toy.decode(way, table, key=jax.random.key(seed)) for way in (way, Greedy()))
        np.testing.assert_array_equal(cold.tokens, greedy.tokens)
        np.testing.assert_allclose(cold.scores, greedy.scores, atol=1e-6)


def test_a_key_gives_the_same_text_for_every_length_and_number_of_draws():
    table = toy.drawn(0, scale=0.5)
    table[:, toy.END] = -2.0
    keys = jax.random.split(jax.random.key(3), 8)
    long, short = ([toy.decode(Sample(), table, n, key).tokens[0] for key in keys] for n in (5, 3))
    np.testing.assert_array_equal(np.stack(long)[:, :3], np.stack(short))
    assert len(set(map(tuple, np.stack(long).tolist()))) > 3
    for key, text in zip(keys, long, strict=True):
        assert text.tolist() in toy.decode(Sample(best=3), table, key=key).tokens.tolist()


def test_sampling_requires_a_key():
    with pytest.raises(ValueError, match="key=None: Sample"):
        toy.decode(Sample(), toy.drawn(0))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"temperature": 0.0}, "temperature=0.0 must be above 0"),
        ({"temperature": float("nan")}, "temperature=nan must be above 0"),
        ({"temperature": float("inf")}, "temperature=inf must be above 0 and finite"),
        ({"top_k": 0}, "top_k=0 must be at least 1"),
        ({"top_p": 0.0}, "top_p=0.0 must be above 0"),
        ({"top_p": 1.01}, "top_p=1.01 must be above 0 and at most 1"),
        ({"best": 0}, "best=0 must be at least 1"),
    ],
)
def test_invalid_fields_are_refused(fields, line):
    with pytest.raises(ValueError, match=line):
        replace(Sample(), **fields)
