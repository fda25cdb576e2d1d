"""Checks that each input is used as intended, or refused with one line that names it."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnlab
from attnlab import mechanisms
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.mechanisms.inputs import check_kinds
from attnlab.modules.attention import Attention
from attnlab.ops.counts import check_counts
from attnlab.ops.mask import Causal, Full, KeyPadding, Window
from attnlab.ops.score import dot
from tests.mechanisms.contract import SMALL, K, V, every, inputs, refusal, stateful

NUMBERS = ("softmax", "softmax-blockwise", "sigmoid", "linear", "retention", "delta")


def test_integer_inputs_equal_float_inputs():
    """Checks the worked example of three tokens with the numbers computed by hand."""
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
def test_every_kind_accepts_integer_inputs(name):
    q, k, v, extra = inputs(SMALL[name], 4)
    whole = [np.round(x).astype(np.int32) for x in (q, k, v)]
    run = jax.jit(lambda *whole: SMALL[name].causal(*whole, **extra))
    np.testing.assert_array_equal(run(*whole), run(*(x.astype(np.float32) for x in whole)))


@stateful
@pytest.mark.parametrize("form", ["causal", "extend"])
def test_inputs_without_one_entry_per_token_are_refused_by_name(name, form):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 4)
    begin = () if form == "causal" else (mechanism.start(4, q.shape[1], v.shape[1], q.dtype),)
    for given, rows in (("keep", 3), ("keep", 5), ("i", 3), ("segment", 5)):
        entries = np.ones(rows, bool if given == "keep" else np.int32)
        with pytest.raises(ValueError, match=rf"{given} must have shape \(4,\), one entry per token, got \({rows},\)"):
            getattr(mechanism, form)(*begin, q, k, v, **{given: entries}, **extra)


@every
def test_positions_of_another_length_are_refused_by_name(name):
    mechanism = SMALL[name]
    mask = Full() if refusal(mechanism, Full()) is None else Causal()
    q, k, v, extra = inputs(mechanism, 4)
    for given, rows in (("i", 3), ("i", 1), ("j", 5)):
        with pytest.raises(ValueError, match=rf"{given} must have shape \(4,\), one entry per token, got \({rows},\)"):
            mechanism.attend(q, k, v, mask, **{given: np.arange(rows, dtype=np.int32)}, **extra)


def test_positions_and_segment_ids_that_are_not_integers_are_refused():
    x, halves = jnp.ones((4, K)), np.arange(4) / 2
    for mechanism in (Softmax(), Linear()):
        for name in ("i", "segment"):
            with pytest.raises(TypeError, match=rf"{name} must hold integers, got float32"):
                mechanism.causal(x, x, x, **{name: halves})
            with pytest.raises(TypeError, match=rf"{name} must hold integers, got float32"):
                mechanism.extend(mechanism.start(4, K, K), x, x, x, **{name: halves})
        with pytest.raises(TypeError, match=r"j must hold integers, got float32"):
            mechanism.attend(x, x, x, j=halves)


def test_numeric_padding_keeps_nonzero_entries():
    q, k, v, _ = inputs(Softmax(), 4)
    numbers = np.array([2, 0, 1, 1])
    for mechanism in (Softmax(), Linear()):
        found = mechanisms.causal(mechanism, q, k, v, keep=numbers)
        np.testing.assert_array_equal(found, mechanisms.causal(mechanism, q, k, v, keep=numbers != 0))


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (np.ones((4, 4), bool), "expected a mask, got an array of shape (4, 4): write Edges(array)"),
        (jnp.ones(4, bool), "expected a mask, got an array of shape (4,): write KeyPadding(array)"),
        (None, "expected a mask, for example Causal() or KeyPadding(keep), got NoneType"),
        (Causal, "expected a mask, got the class Causal: write Causal()"),
        (KeyPadding, "expected a mask, got the class KeyPadding: write KeyPadding(keep)"),
        (Window, "expected a mask, got the class Window: write Window(left, right)"),
    ],
)
def test_invalid_masks_are_refused_with_a_suggestion(mask, told):
    with pytest.raises(TypeError, match=re.escape(told) + "$"):
        check_kinds(Softmax(), mask, None)


@pytest.mark.parametrize(
    "compose", [lambda: Causal & Window(2, 2), lambda: Causal | Window(2, 2), lambda: Window(2, 2) & Causal]
)
def test_a_class_instead_of_a_mask_is_refused_with_a_suggestion(compose):
    with pytest.raises(TypeError, match=r"got the class Causal: write Causal\(\)$"):
        compose()
    with pytest.raises(TypeError, match=r"got the class Causal: write Causal\(\)$"):
        attnlab.attention(*np.ones((3, 1, 4, 1, 2), np.float32), mask=Causal)


@pytest.mark.parametrize("axes", [1, 2])
def test_the_suggested_vmap_for_leading_axes_runs(axes):
    mechanism, mask = Softmax(), Causal()
    q, k, v = np.random.default_rng(0).normal(size=(3, *(3,) * axes, 4, 2)).astype(np.float32)
    expected = attnlab.attention(*(np.swapaxes(x, -2, -3) for x in (q, k, v)), causal=True)
    extend = lambda q, k, v: mechanism.extend(mechanism.start(4, 2, 2), q, k, v)
    for call, form in ((mechanism.attend, mechanism.attend), (mechanism.causal, None), (extend, None)):
        with pytest.raises(
            ValueError, match=r" of one head, got .*; for \[(B )?T H K\], use attnlab.attention; for"
        ) as refused:
            call(q, k, v)
        line = str(refused.value).rpartition("write ")[2]
        assert ("causal" in line) == (form is None)
        names = {"jax": jax, "mechanism": mechanism, "causal": mechanisms.causal, "mask": mask, "q": q, "k": k, "v": v}
        np.testing.assert_allclose(np.swapaxes(eval(line, names), -2, -3), expected, atol=1e-6)


HEADED = [name for name, mechanism in MECHANISMS.items() if mechanism.heads(2)]


@pytest.mark.parametrize("name", HEADED)
def test_vmap_over_heads_needs_constants_per_head(name):
    """Computes the decay in a NumPy loop over heads and tokens: every head decays at its own rate."""
    mechanism, H, T = MECHANISMS[name], 3, 7
    q, k, v = np.random.default_rng(0).normal(size=(3, H, T, 4)).astype(np.float32)
    run = jax.vmap(lambda q, k, v, **extra: mechanisms.causal(mechanism, q, k, v, **extra))
    with pytest.raises(TypeError, match=r"is missing inputs rate; pass rate=mechanism.heads\(H\)"):
        run(q, k, v)
    with pytest.raises(ValueError, match=r"rate must have shape \(\), got \(3,\)"):
        mechanisms.causal(mechanism, q[0], k[0], v[0], rate=mechanism.heads(H)["rate"])
    found = run(q, k, v, rate=mechanism.heads(H)["rate"])
    # The share of the first token that remains after one more token, e^−rate, with rates computed by hand.
    left = {"retention": [31 / 32, 63 / 64, 127 / 128], "lightning": np.exp([-1 / 16, -1 / 256, -1 / 4])}[name]
    for h in range(H):
        state = np.zeros((4, 4))
        for t in range(T):
            state = left[h] * state + np.outer(k[h, t], v[h, t])
            y = q[h, t] @ state * (0.5 if name == "retention" else 1)
            np.testing.assert_allclose(found[h, t], y, atol=1e-5)


def test_one_key_head_of_each_kind_has_the_constants_of_its_heads_in_a_module():
    """Checks that a module passes the constants: the heads of one attention decay at different rates."""
    attention = Attention(jax.random.key(0), 8, 2, MECHANISMS["retention"])
    for kernel in (attention.q, attention.k, attention.v):
        kernel.w.set_value(jnp.tile(jnp.eye(8, 4), (1, 2)))
    attention.o.w.set_value(jnp.eye(8))
    x = np.zeros((2, 8), np.float32)
    x[:, 0] = 1
    y = attention.causal(jnp.asarray(x))[0]
    np.testing.assert_allclose(y[1, [0, 4]], [(1 + 31 / 32) / 2, (1 + 63 / 64) / 2], atol=1e-6)


def test_invalid_biases_are_refused_by_name():
    q, k, v, _ = inputs(Softmax(), 4)
    extend = lambda *x, **bias: Softmax().extend(Softmax().start(4, K, V), *x, **bias)
    for call in (Softmax().attend, Softmax().causal, extend):
        with pytest.raises(TypeError, match=r"bias must be a function bias\(q, i, j\), got"):
            call(q, k, v, bias=np.zeros((4, 4)))


@pytest.mark.parametrize("name", ["window", "softmax", "cosformer"])
def test_decoding_continues_from_given_positions(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 4)
    i = np.array([5, 9, 12], np.int32)

    def last(**where):
        _, state = mechanism.extend(mechanism.start(4, K, V, q.dtype), q[:3], k[:3], v[:3], i=i, **extra)
        return mechanism.extend(state, q[3:], k[3:], v[3:], **where, **extra)[0]

    np.testing.assert_array_equal(last(), last(i=np.array([13], np.int32)))


def test_numeric_masks_and_their_negation():
    q, k, v, _ = inputs(Softmax(), 4)
    keep = np.array([1, 0, 2, 1])
    for mask, same in (
        (~KeyPadding(keep), ~KeyPadding(keep != 0)),
        (KeyPadding(keep) & Causal(), KeyPadding(keep != 0) & Causal()),
    ):
        np.testing.assert_array_equal(Softmax().attend(q, k, v, mask), Softmax().attend(q, k, v, same))


@pytest.mark.parametrize("name", SMALL)
def test_no_queries_give_no_output_and_no_keys_are_fully_masked(name):
    mechanism = SMALL[name]
    if mechanism.traits.non_causal and refusal(mechanism, Full(), 3, 5) is None:
        for T, S in ((0, 5), (3, 0)):
            q, k, v, extra = inputs(mechanism, T, S)
            np.testing.assert_array_equal(mechanism.attend(q, k, v, **extra), np.zeros((T, V)))
    if mechanism.traits.decodes:
        q, k, v, extra = inputs(mechanism, 0)
        assert mechanism.causal(q, k, v, **extra).shape == (0, V)
        state = mechanism.start(4, K, V)
        y, after = mechanism.extend(state, q, k, v, **extra)
        assert y.shape == (0, V)
        for before, now in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
            np.testing.assert_array_equal(before, now)


def test_complex_numbers_are_refused():
    q, k, v, _ = inputs(Softmax(), 3)
    with pytest.raises(TypeError, match="expected arrays of real numbers, got complex64"):
        Softmax().attend(q + 1j, k, v)


def test_sizes_are_integers_of_any_type():
    check_counts(block=np.int64(2), chunk=None)
    for size, line in ((0, "at least 1"), (1.5, "an integer"), ("3", "an integer")):
        with pytest.raises(ValueError, match=f"block={size!r} must be {line}$"):
            check_counts(block=size)
