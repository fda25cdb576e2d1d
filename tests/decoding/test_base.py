from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.decoding import DECODERS, Beam, DecodeProblem, Sample, Search, SearchResult
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Transformer
from attnlab.tasks.base.shapes import Pairs
from tests.models.training import filled

from . import toy

WAYS = [*DECODERS.values(), Beam(size=3, best=2, penalty=0.0), Sample(best=3, temperature=2.0, top_k=2, top_p=0.9)]


def test_decoders_are_registered_hashable_values():
    assert {name: type(way).__name__.lower() for name, way in DECODERS.items()} == {name: name for name in DECODERS}
    assert all(isinstance(way, Search) and hash(way) == hash(replace(way)) for way in WAYS)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_batch_is_decoded_each_example_as_alone_and_its_scores_are_log_probabilities(way):
    # The tables have different sharpness: some searches stop at once, and some continue to the end.
    tables = np.stack([toy.drawn(n, scale=scale) for n, scale in enumerate((0.3, 1.0, 3.0, 6.0))])
    keys = jax.random.split(jax.random.key(0), len(tables))
    together = toy.decode_all(way, tables, keys)
    assert (together.tokens.dtype, together.scores.dtype) == (jnp.int32, jnp.float32)
    for n, table in enumerate(tables):
        alone = toy.decode(way, table, key=keys[n])
        np.testing.assert_array_equal(together.tokens[n], alone.tokens)
        np.testing.assert_allclose(together.scores[n], alone.scores, atol=1e-6)
        assert list(alone.scores) == sorted(alone.scores, reverse=True)
        for tokens, score in zip(alone.tokens, alone.scores, strict=True):
            text = toy.row(tokens)
            penalty = toy.norm(len(text), getattr(way, "penalty", 0))
            np.testing.assert_allclose(score, toy.total(table, text) / penalty, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_bos_and_padding_are_never_chosen_and_their_probability_is_not_redistributed(way):
    table = toy.drawn(0)
    table[:, [toy.BEGIN, toy.PAD]] = 9.0
    tokens, scores = toy.decode(way, table, key=jax.random.key(0))
    assert set(map(int, np.concatenate([toy.row(line) for line in tokens]))) <= {toy.END, *toy.ORDINARY}
    assert (scores < -5).all()


@pytest.mark.parametrize("way", DECODERS.values(), ids=str)
def test_half_precision_scores_are_summed_in_float32(way):
    table = jnp.asarray(toy.drawn(0), jnp.bfloat16)
    tokens, scores = toy.decode(way, table, key=jax.random.key(0))
    text = toy.row(tokens[0])
    expected = toy.total(np.asarray(table), text) / toy.norm(len(text), getattr(way, "penalty", 0))
    np.testing.assert_allclose(scores, [expected], rtol=1e-5)


@pytest.mark.parametrize("way", DECODERS.values(), ids=str)
def test_nan_scores_are_reported_as_nan(way):
    table = toy.drawn(0)
    table[:, toy.END] = -9.0
    table[toy.SYMBOLS :, 3] = np.nan
    tokens, scores = toy.decode(way, table, key=jax.random.key(0))
    assert np.isnan(scores).all()
    assert not np.isin(tokens, [toy.BEGIN]).any()


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ((1, 2, 6), "length=6 must be at most 5, the capacity of the state"),
        ((1, 2, 0), "length=0 must be at least 1"),
        ((1, 1, 5), "end=1 must differ from begin=1 and pad=0"),
        ((1, 0, 5), "end=0 must differ from begin=1 and pad=0"),
        ((1, np.int64(0), 5), r"end=np.int64\(0\) must differ from begin=1 and pad=0"),
        ((np.int32(1), 1, 5), r"end=1 must differ from begin=np.int32\(1\) and pad=0"),
    ],
)
def test_an_impossible_problem_is_refused(asked, line):
    with pytest.raises(ValueError, match=line):
        DecodeProblem(toy.step, toy.start(toy.drawn(0)), *asked)


@pytest.mark.parametrize("way", DECODERS.values(), ids=str)
def test_a_model_that_does_not_fit_the_problem_is_refused(way):
    state, key = toy.start(toy.drawn(0)), jax.random.key(0)
    rows = lambda state, token: (toy.step(state, token)[0][None], state)
    with pytest.raises(ValueError, match=r"expected logits \[V\] of one symbol from step, got shape \(1, 5\)"):
        way.search(DecodeProblem(rows, state, toy.BEGIN, toy.END, 5), key)
    with pytest.raises(ValueError, match="end=5 must be below 5, the number of the model's symbols"):
        way.search(DecodeProblem(toy.step, state, toy.BEGIN, 5, 5), key)
    tokens, _ = way.search(DecodeProblem(toy.step, state, toy.BEGIN, -1, 4), key)
    assert not np.isin(tokens, [toy.BEGIN, toy.PAD]).any()


@pytest.mark.parametrize("mechanism", [Softmax(), Linear()], ids=str)
def test_search_scores_equal_teacher_forced_scores(mechanism):
    length, sources = 6, jnp.array([[3, 4, 5, 6, 0, 0], [7, 3, 0, 0, 0, 0], [5, 9, 8, 8, 4, 3]], jnp.int32)
    model = filled(
        Transformer(width=8, heads=2, biases=False, norm="rms", mechanism=mechanism), Pairs(12, 9, 6, length)
    )
    # Large parameters make later symbols depend on earlier ones.
    model = jax.tree.map(lambda leaf: 2 * leaf, model)

    @jax.jit
    @jax.vmap
    def answers(source):
        state = model.start(source, source != 0, length)
        ways = DECODERS["greedy"], Beam(size=1, penalty=0.0), Beam(size=4, penalty=0.6, best=4)
        decoded = [way.search(DecodeProblem(model.step, state, 1, 2, length)) for way in ways]
        return SearchResult(*(jnp.concatenate(parts) for parts in zip(*decoded, strict=True)))

    @jax.jit
    @partial(jax.vmap, in_axes=(0, 0))
    @partial(jax.vmap, in_axes=(None, 0))
    def forced(source, tokens):
        given = jnp.pad(tokens[:-1], (1, 0), constant_values=1)
        logs = jax.nn.log_softmax(model(source, given, source != 0, tokens != 0))
        return jnp.where(tokens != 0, jnp.take_along_axis(logs, tokens[:, None], axis=1)[:, 0], 0.0).sum()

    tokens, scores = answers(sources)
    np.testing.assert_array_equal(tokens[:, 1], tokens[:, 0])
    np.testing.assert_allclose(scores[:, 1], scores[:, 0], atol=1e-5)
    norms = toy.norm(np.sum(tokens != 0, axis=-1), 0.6)
    norms[:, :2] = 1
    np.testing.assert_allclose(forced(sources, tokens) / norms, scores, atol=1e-4)
    found = np.asarray(tokens[:, 2:]).reshape(-1, length).tolist()
    assert len(set(map(tuple, found))) > 5
    assert max(len(set(text)) for text in found) > 3
