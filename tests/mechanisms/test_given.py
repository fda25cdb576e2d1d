"""What is given is taken as it is meant, or refused in a line that names it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import mechanisms
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.mechanisms.given import check_kinds
from attnlab.ops.counts import check_counts
from attnlab.ops.mask import Causal, Full, Kept
from attnlab.ops.score import dot
from tests.mechanisms.contract import SMALL, K, V, every, inputs, refusal, stateful

NUMBERS = ("softmax", "softmax-blockwise", "sigmoid", "linear", "retention", "delta")


def test_whole_numbers_are_mixed_as_the_numbers_they_are():
    """The worked case of three tokens, as it is written on paper."""
    q = jnp.array([[1, 0, 2], [2, 2, 2], [2, 1, 3]])
    k = jnp.array([[0, 1, 1], [4, 4, 0], [2, 3, 1]])
    v = jnp.array([[1, 2, 3], [2, 8, 0], [2, 6, 3]])
    found = Softmax(score=dot).attend(q, k, v)
    wanted = Softmax(score=dot).attend(*(x.astype(float) for x in (q, k, v)))
    assert found.dtype == wanted.dtype == jnp.result_type(float)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(found[0], [1.9366, 6.6831, 1.5951], atol=1e-4)
    np.testing.assert_array_equal(mechanisms.weights(Softmax(score=dot), q, k).sum(axis=1).round(5), 1)


@pytest.mark.parametrize("name", NUMBERS)
def test_whole_numbers_are_mixed_by_every_kind(name):
    q, k, v, extra = inputs(SMALL[name], 4)
    whole = [np.round(x).astype(np.int32) for x in (q, k, v)]
    found = SMALL[name].whole(*whole, **extra)
    wanted = SMALL[name].whole(*(x.astype(np.float32) for x in whole), **extra)
    np.testing.assert_array_equal(found, wanted)


@stateful
@pytest.mark.parametrize("form", ["whole", "extend"])
def test_what_has_not_an_entry_a_token_is_named(name, form):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 4)
    begin = () if form == "whole" else (mechanism.start(4, q.shape[1], v.shape[1], q.dtype),)
    for given, rows in (("keep", 3), ("keep", 5), ("i", 3), ("segment", 5)):
        entries = np.ones(rows, bool if given == "keep" else np.int32)
        with pytest.raises(ValueError, match=rf"{given} \({rows},\) must be \(4,\): one entry a token"):
            getattr(mechanism, form)(*begin, q, k, v, **{given: entries}, **extra)


@every
def test_positions_of_another_number_of_tokens_are_named(name):
    mechanism = SMALL[name]
    mask = Full() if refusal(mechanism, Full()) is None else Causal()
    q, k, v, extra = inputs(mechanism, 4)
    for given, rows in (("i", 3), ("i", 1), ("j", 5)):
        with pytest.raises(ValueError, match=rf"{given} \({rows},\) must be \(4,\)"):
            mechanism.attend(q, k, v, mask, **{given: np.arange(rows, dtype=np.int32)}, **extra)


def test_padding_in_numbers_keeps_where_it_is_not_zero():
    q, k, v, _ = inputs(Softmax(), 4)
    numbers = np.array([2, 0, 1, 1])
    for mechanism in (Softmax(), Linear()):
        found = mechanisms.causal(mechanism, q, k, v, keep=numbers)
        np.testing.assert_array_equal(found, mechanisms.causal(mechanism, q, k, v, keep=numbers != 0))


@pytest.mark.parametrize(
    ("mask", "told"), [(np.ones((4, 4), bool), "not ndarray"), (None, "not NoneType"), (Causal, "not Causal")]
)
def test_what_is_no_mask_is_named(mask, told):
    with pytest.raises(TypeError, match=rf"a mask is wanted, as Causal\(\) or Kept\(keep\), {told}"):
        check_kinds(Softmax(), mask, None)


def test_what_is_no_bias_is_named():
    q, k, v, _ = inputs(Softmax(), 4)
    extend = lambda *x, **bias: Softmax().extend(Softmax().start(4, K, V), *x, **bias)
    for call in (Softmax().attend, Softmax().whole, extend):
        with pytest.raises(TypeError, match=r"a bias is a function of queries and positions, bias\(q, i, j\), not"):
            call(q, k, v, bias=np.zeros((4, 4)))


@pytest.mark.parametrize("name", ["window", "softmax", "cosformer"])
def test_positions_that_were_given_are_counted_on_from(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 4)
    i = np.array([5, 9, 12], np.int32)

    def last(**where):
        _, state = mechanism.extend(mechanism.start(4, K, V, q.dtype), q[:3], k[:3], v[:3], i=i, **extra)
        return mechanism.extend(state, q[3:], k[3:], v[3:], **where, **extra)[0]

    np.testing.assert_array_equal(last(), last(i=np.array([13], np.int32)))


def test_kept_numbers_and_their_opposite():
    q, k, v, _ = inputs(Softmax(), 4)
    keep = np.array([1, 0, 2, 1])
    for mask, same in ((~Kept(keep), ~Kept(keep != 0)), (Kept(keep) & Causal(), Kept(keep != 0) & Causal())):
        np.testing.assert_array_equal(Softmax().attend(q, k, v, mask), Softmax().attend(q, k, v, same))


@pytest.mark.parametrize("name", SMALL)
def test_of_no_queries_there_is_no_answer_and_no_keys_are_all_unseen(name):
    mechanism = SMALL[name]
    if mechanism.attends and refusal(mechanism, Full(), 3, 5) is None:
        for T, S in ((0, 5), (3, 0)):
            q, k, v, extra = inputs(mechanism, T, S)
            np.testing.assert_array_equal(mechanism.attend(q, k, v, **extra), np.zeros((T, V)))
    if mechanism.stateful:
        q, k, v, extra = inputs(mechanism, 0)
        assert mechanism.whole(q, k, v, **extra).shape == (0, V)
        state = mechanism.start(4, K, V)
        y, after = mechanism.extend(state, q, k, v, **extra)
        assert y.shape == (0, V)
        for before, now in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
            np.testing.assert_array_equal(before, now)


def test_complex_numbers_are_refused():
    q, k, v, _ = inputs(Softmax(), 3)
    with pytest.raises(TypeError, match="attention is of real numbers, and an array of complex64 was given"):
        Softmax().attend(q + 1j, k, v)


def test_sizes_are_whole_numbers_of_any_kind():
    check_counts(block=np.int64(2), chunk=None)
    for size in (0, 1.5, "3"):
        with pytest.raises(ValueError, match=f"block={size!r} must be at least 1, and whole"):
            check_counts(block=size)
