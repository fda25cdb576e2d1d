"""Tests that are specific to linear attention. The contract tests check that all its forms agree."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab import mechanisms as library
from attnlab import registry
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.mechanisms.fast_weight import FastWeight
from attnlab.mechanisms.linear import ROWS, WIDE
from attnlab.modules.position import Rotary
from attnlab.ops.feature import FEATURES, Cosformer, EluPlusOne, Exp, Favor, Identity, Narrow, Rebased, Taylor
from attnlab.ops.mask import Causal, Full, KeyPadding, Window
from tests.mechanisms.contract import (
    K,
    V,
    attend,
    attend_back,
    causal,
    causal_back,
    compiled,
    extend,
    inputs,
    near,
    weights,
)

every = pytest.mark.parametrize("name", FEATURES)
# Softmax attention over T keys has rank T in exact arithmetic. Singular values below this share of the largest are
# noise.
NOISE = 1e-12


@compiled
def features_of(feature, q, k, extra):
    """Returns φ(q) and ψ(k), multiplied by their scales."""
    sides = feature.query(q, np.arange(len(q)), **extra), feature.key(k, np.arange(len(k)), **extra)
    return [s.rows * (1 if s.scale is None else jnp.exp(s.scale)[:, None]) for s in sides]


def recurrence(q, k, v, normalise=True):
    """Computes S_t = S_{t−1} + ψ(k_t)ᵀ v_t, z_t = z_{t−1} + ψ(k_t), y_t = φ(q_t) S_t / φ(q_t)·z_t, token by token."""
    S, z, y = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1]), []
    for q_t, k_t, v_t in zip(q, k, v, strict=True):
        S, z = S + np.outer(k_t, v_t), z + k_t
        y.append(q_t @ S / (q_t @ z if normalise and q_t @ z else 1))
    return np.array(y)


@every
@pytest.mark.usefixtures("x64")
def test_all_forms_equal_the_recurrence(name):
    mechanism = Linear(feature=FEATURES[name], block=4)
    q, k, v, extra = inputs(mechanism, 11)
    plain = recurrence(*features_of(mechanism.feature, q, k, extra), np.asarray(v))
    for y in (
        causal(mechanism, q, k, v, **extra),
        causal(mechanism, q, k, v, block=1, **extra),
        attend(mechanism, q, k, v, Causal(), **extra),
    ):
        near(y, plain, 1e-10 * np.abs(plain).max())
    if not mechanism.feature.scaled:
        mechanism = Linear(feature=FEATURES[name], block=4, normalise=False)
        plain = recurrence(*features_of(mechanism.feature, q, k, extra), np.asarray(v), normalise=False)
        near(causal(mechanism, q, k, v, **extra), plain)


@pytest.mark.parametrize("name", ["elu+1", "exp", "hedgehog", "cosformer"])
@pytest.mark.usefixtures("x64")
def test_one_sum_over_keys_equals_all_pairs(name):
    mechanism = Linear(feature=FEATURES[name])
    q, k, v, extra = inputs(mechanism, 5, 9)
    keep = jnp.array([1, 0, 1, 1, 1, 0, 1, 1, 1], bool)
    # The same mask, as a product of rows and columns and as pairs.
    near(
        attend(mechanism, q, k, v, KeyPadding(keep), **extra),
        attend(mechanism, q, k, v, KeyPadding(keep) & Window(99, 99), **extra),
    )


WIDTH = 32  # Taylor makes 1,057 features of it
TURNED = Linear(feature=Taylor()).with_rotary(Rotary())


@pytest.mark.parametrize(
    "mechanism", [Linear(feature=Taylor()), Linear(feature=Taylor(), normalise=False), TURNED], ids=str
)
@pytest.mark.usefixtures("x64")
def test_many_features_are_computed_for_some_rows_at_a_time(mechanism):
    random = np.random.default_rng(0)
    q, k, v = (jnp.asarray(random.normal(size=(n, WIDTH))) for n in (1200, 1500, 1500))
    assert mechanism.feature.dim(WIDTH) > WIDE
    assert len(q) > ROWS
    # Computing the kernel of all pairs would be more work.
    assert len(q) * len(k) * 2 * WIDTH > (len(q) + len(k)) * mechanism.feature.dim(WIDTH) * (WIDTH + 1)
    keep = jnp.asarray(random.random(len(k)) < 0.8)

    def both(mask):
        return jax.value_and_grad(lambda *x: jnp.sin(mechanism.attend(*x, mask)).sum(), (0, 1, 2))(q, k, v)

    # The same mask, as a product of rows and columns and as pairs.
    pieces, pairs = (jax.tree.leaves(both(mask)) for mask in (KeyPadding(keep), KeyPadding(keep) & Window(9999, 9999)))
    for one, other in zip(pieces, pairs, strict=True):
        near(one, other, 1e-11 * np.abs(other).max())


CLOSED = {
    "taylor": Taylor(),
    "rebased": Rebased(),
    "narrow": Narrow(Taylor(), 24),
}


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("feature", CLOSED.values(), ids=CLOSED)
@pytest.mark.usefixtures("x64")
def test_a_pair_kernel_equals_the_product_of_features(feature, normalise):
    mechanism, T = Linear(feature=feature, normalise=normalise), 300
    assert feature.has_kernel
    assert T > ROWS
    random = np.random.default_rng(0)
    q, k, v = (jnp.asarray(random.normal(size=(T, WIDTH))) for _ in range(3))
    extra = mechanism.initial(jax.random.key(0), WIDTH, WIDTH)
    extra = {name: jnp.asarray(np.asarray(x) + random.normal(size=x.shape)) for name, x in extra.items()}
    keep, segment = np.arange(T) % 5 > 0, np.arange(T) // 170
    # The last token of the first run sees nothing of the second run, and no token sees the padding.
    past, sees = np.tri(T, dtype=bool), keep[:, None] & keep & (segment[:, None] == segment)

    def plain(allowed, q, k, v, extra):
        a, b = features_of(feature, q, k, extra)
        weights = jnp.where(allowed, a @ b.T, 0)
        total = weights.sum(axis=1, keepdims=True)
        return weights @ v / (jnp.where(total == 0, 1, total) if normalise else 1)

    def with_gradients(f):
        return jax.jit(jax.value_and_grad(lambda *x: jnp.sin(f(*x)).sum(), (0, 1, 2, 3)))(q, k, v, extra)

    # A requested state consists of features. Otherwise pairs are weighted by the kernel.
    def decoded(q, k, v, extra):
        state = mechanism.start(T, WIDTH, WIDTH)
        y, state = mechanism.extend(state, q[:140], k[:140], v[:140], keep=keep[:140], segment=segment[:140], **extra)
        rest = mechanism.extend(state, q[140:], k[140:], v[140:], keep=keep[140:], segment=segment[140:], **extra)[0]
        return jnp.concatenate([y, rest])

    def weighed(q, k, v, extra):
        return mechanism.weights(q, k, past, i=np.arange(T), j=np.arange(T), **extra) @ v

    forms = {
        "both sides": (
            np.broadcast_to(keep, (T, T)),
            lambda q, k, v, e: mechanism.attend(q, k, v, KeyPadding(keep), **e),
        ),
        "whole": (past & sees, lambda q, k, v, e: mechanism.causal(q, k, v, keep=keep, segment=segment, **e)),
        "by a state": (past & sees, decoded),
        "weights": (past, weighed),
    }
    for allowed, form in forms.values():
        exact = with_gradients(partial(plain, allowed))
        for one, other in zip(jax.tree.leaves(with_gradients(form)), jax.tree.leaves(exact), strict=True):
            near(one, other, 1e-10 * np.abs(other).max() + 1e-12)


def test_pairs_are_used_while_cheaper_than_features():
    mechanism = Linear(feature=Taylor())
    features = f",{mechanism.feature.dim(WIDTH)}]"

    def traced(form, T):
        x = jax.ShapeDtypeStruct((T, WIDTH), jnp.float32)
        return str(jax.make_jaxpr(form)(x, x, x))

    for form in (mechanism.causal, mechanism.attend):
        assert features not in traced(form, 128)
        assert features in traced(form, 4096)
    few, more, many = (mechanism.cost(T, T, WIDTH, WIDTH).flops for T in (128, 256, 4096))
    assert more == 4 * few
    assert many == mechanism.cost(2048, 2048, WIDTH, WIDTH).flops * 2


def test_gradients_store_many_features_of_some_rows_only():
    mechanism, T = Linear(feature=Taylor()), 4096
    loss = lambda q, k, v: mechanism.attend(q, k, v).sum()
    x = jax.ShapeDtypeStruct((T, WIDTH), jnp.float32)
    held = jax.jit(jax.grad(loss, (0, 1, 2))).lower(x, x, x).compile().memory_analysis().temp_size_in_bytes
    assert held < T * mechanism.feature.dim(WIDTH) * 4


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("feature", [EluPlusOne(), Identity(), Taylor(), Favor(m=4)], ids=str)
def test_the_map_has_no_more_rank_than_the_feature_map_dimensions_and_softmax_has_full(feature):
    mechanism, T = Linear(feature=feature), 24
    q, k, _, _ = inputs(mechanism, T)
    # Of the K² products of two components, K(K+1)/2 differ.
    M = feature.dim(K) - (K * (K - 1) // 2 if isinstance(feature, Taylor) else 0)
    assert feature.dim(K) < T
    assert np.linalg.matrix_rank(weights(mechanism, q, k), rtol=NOISE) == M
    # q and k are spread out, since for close keys some singular values of softmax are below the noise.
    assert np.linalg.matrix_rank(weights(Softmax(), 3 * q, 3 * k), rtol=NOISE) == T
    # Causal maps are triangular and of full rank. Only their off-diagonal blocks have a lower rank.
    map_ = np.asarray(weights(mechanism, q, k, Causal()))
    assert np.linalg.matrix_rank(map_, rtol=NOISE) == T
    if M < T // 2:
        assert np.linalg.matrix_rank(map_[T // 2 :, : T // 2], rtol=NOISE) == M
        spread = np.asarray(weights(Softmax(), 3 * q, 3 * k, Causal()))
        assert np.linalg.matrix_rank(spread[T // 2 :, : T // 2], rtol=NOISE) == T // 2


@pytest.mark.usefixtures("x64")
def test_unnormalised_heads_are_one_head_that_keeps_the_diagonal_blocks_of_its_state():
    H, T = 3, 16
    rng = np.random.default_rng(0)
    q, k, v = (jnp.asarray(rng.normal(size=(T, H, n))) for n in (K, K, V))
    mechanism = Linear(feature=Identity(), normalise=False)
    heads = jnp.concatenate([attend(mechanism, q[:, h], k[:, h], v[:, h]) for h in range(H)], axis=1)
    joined = [np.asarray(x).reshape(T, -1) for x in (q, k, v)]
    state = joined[1].T @ joined[2]
    blocks = np.kron(np.eye(H), np.ones((K, V)))
    near(heads, joined[0] @ (state * blocks))
    assert np.abs(heads - joined[0] @ state).max() > 1
    for h in range(H):
        assert np.linalg.matrix_rank(weights(mechanism, q[:, h], k[:, h]), rtol=NOISE) == K
        assert np.linalg.matrix_rank(weights(Softmax(), q[:, h], k[:, h]), rtol=NOISE) > K


def test_a_map_with_unknown_scale_needs_normalisation():
    for feature in (Exp(), Favor(), FEATURES["hedgehog-exp"]):
        with pytest.raises(ValueError, match=r"normalise=False is not supported with feature=(Exp|Favor|Hedgehog)"):
            Linear(feature=feature, normalise=False)
    with pytest.raises(ValueError, match="block=0 must be at least 1"):
        Linear(block=0)


@pytest.mark.parametrize(("name", "size"), [("exp", 20), ("hedgehog-exp", 20), ("favor+", 10)])
def test_exponents_beyond_the_float_range_equal_float64(name, size):
    mechanism = Linear(feature=FEATURES[name], block=4)
    q, k, v, extra = inputs(mechanism, 11, dtype=jnp.float32)
    # The largest features are e^60, whose product overflows float32. Those of favor+ include e^−|x'|²/2 = e^−100.
    q, k = q * size, k * size
    with jax.enable_x64(True):
        exact = [x.astype(jnp.float64) for x in (q, k, v)], {n: x.astype(jnp.float64) for n, x in extra.items()}
        # In float64 the exponentials do not overflow, so the equation itself gives the expected values.
        plain = recurrence(*features_of(mechanism.feature, *exact[0][:2], exact[1]), np.asarray(v, float))
    for y in (causal(mechanism, q, k, v, **extra), causal(mechanism, q, k, v, block=1, **extra)):
        assert np.abs(y - plain).max() < 1e-3 * np.abs(plain).max()


@pytest.mark.parametrize("block", [None, 1, 3])
@pytest.mark.parametrize("feature", [Exp(), Favor(m=4)], ids=str)
def test_a_large_later_key_changes_no_earlier_output(feature, block):
    mechanism = Linear(feature=feature, block=4)
    q, k, v, _ = inputs(mechanism, 9, dtype=jnp.float32)
    before = causal(mechanism, q, k, v, block=block)
    after = causal(mechanism, q, np.where(np.arange(len(k))[:, None] == 6, k.dtype.type(3e4), k), v, block=block)
    np.testing.assert_array_equal(before[:6], after[:6])


# The contract tests check the other feature maps.
@pytest.mark.parametrize("name", [n for n, f in FEATURES.items() if Linear(feature=f) not in MECHANISMS.values()])
@settings(max_examples=6)
@given(
    scale=st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 30.0, 1e4]),
    shift=st.sampled_from([0.0, -1e4, -100.0, -43.5, -43.0, -40.0, 88.0, 1e4]),
    seed=st.integers(0, 3),
)
def test_values_and_gradients_are_finite_at_the_extremes(name, scale, shift, seed):
    mechanism = Linear(feature=FEATURES[name], block=4)
    q, k, v, extra = inputs(mechanism, 7, seed=seed, dtype=jnp.float32)
    q, k, target = (*(x * np.float32(scale) + np.float32(shift) for x in (q, k)), np.ones((7, V), np.float32))
    found = causal_back(mechanism, target, q, k, v, extra), attend_back(mechanism, target, q, k, v, extra)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(found))


def test_features_that_underflow_give_zero():
    mechanism = Linear()
    q, k, v, extra = inputs(mechanism, 5, dtype=jnp.float32)
    target = jnp.ones((5, V), jnp.float32)
    y, back = causal_back(mechanism, target, q - 100, k - 100, v, extra)
    assert not np.any(y)
    assert not any(np.any(g) for g in jax.tree.leaves(back))
    # The first key has no features. The outputs of later tokens are those without this key.
    y = causal(mechanism, q, np.where(np.arange(len(k))[:, None] == 0, k.dtype.type(-100), k), v)
    near(y[1:], causal(mechanism, q[1:], k[1:], v[1:]), 1e-6)
    assert not np.any(y[0])


def test_faint_float16_features_are_not_lost():
    mechanism = Linear()
    q, k, v, _ = inputs(mechanism, 6, dtype=jnp.float16)
    # Each feature is near 6e-6 and their product near 4e-11, which float16 cannot represent, nor can it represent
    # 1e-10.
    y = causal(mechanism, q - 12, k - 12, v)
    exact = causal(mechanism, *(x.astype(jnp.float32) for x in (q - 12, k - 12, v)))
    assert np.abs(exact).max() > 0.5
    assert np.abs(y.astype(jnp.float32) - exact).max() <= 2e-3 * np.abs(exact).max()


@pytest.mark.parametrize(("feature", "least"), [(EluPlusOne(), 35.3), (Exp(), 71.4)], ids=str)
def test_weights_with_a_sum_below_2e_31_give_zero(feature, least):
    one = np.ones((1, 1), np.float32)
    for far, found in ((least - 0.1, 1), (least + 0.1, 0)):
        # Exp has two features: the larger one of the query meets the smaller one of the key, and vice versa.
        q, k = ([[0, -far]], [[-far, 0]]) if feature == Exp() else ([[-far]], [[-far]])
        y = attend(Linear(feature=feature), np.array(q, np.float32), np.array(k, np.float32), one)
        np.testing.assert_allclose(y, [[found]], rtol=1e-5)


@pytest.mark.parametrize("mask", [Full(), Window(3, 3), Causal()], ids=str)
def test_weights_beyond_half_precision_keep_small_values(mask):
    mechanism = Linear(feature=Identity(), normalise=False)
    q, v = np.full((3, 4), 300, np.float16), np.full((3, 4), 0.01, np.float16)
    seen = np.asarray(mask(np.arange(3), np.arange(3))).sum(axis=1)
    y = attend(mechanism, q, q, v, mask, i=np.arange(3), j=np.arange(3))
    np.testing.assert_allclose(y, np.outer(seen, np.full(4, 4 * 300**2 * 0.01)), rtol=2e-3)


def test_cosformer_beyond_its_length():
    mechanism = Linear(feature=Cosformer(length=4))
    q, k, v, _ = inputs(mechanism, 5)
    with pytest.raises(
        ValueError, match=r"Cosformer\(length=4\) supports positions 0 … 3, got 4; use length=5 or more"
    ):
        mechanism.attend(q, k, v)
    with pytest.raises(ValueError, match="supports positions 0 … 3, got 4"):
        causal(mechanism, q, k, v)
    with pytest.raises(ValueError, match="supports positions 0 … 3, got 4"):
        mechanism.start(5, K, V)
    longer = mechanism.with_length(5)
    assert longer.feature == Cosformer(length=5)
    assert np.isfinite(causal(longer, q, k, v)).all()
    # If there are more queries than keys, some positions are before the first key. Only distances matter.
    assert np.isfinite(attend(mechanism, q[:4], k[:2], v[:2])).all()
    assert not np.any(attend(mechanism, q[:4], k[:0], v[:0]))
    # Segments start anew, so all five tokens have valid positions.
    assert np.isfinite(causal(mechanism, q, k, v, segment=jnp.array([0, 0, 1, 1, 1]))).all()


@pytest.mark.parametrize(
    "mechanism",
    [
        Linear(feature=Cosformer(8), block=4),
        FastWeight(feature=Cosformer(8), chunk=4),
    ],
)
@pytest.mark.usefixtures("x64")
def test_rows_beyond_the_length_are_accepted_in_all_blocks_if_positions_are_within(mechanism):
    q, k, v, extra = jax.tree.map(jnp.asarray, inputs(mechanism, 11))
    kept, blocks = np.arange(11) % 4 > 0, (None, 1, 3, 11)
    for taken in ({"keep": kept}, {"segment": np.arange(11) // 6}, {"i": np.arange(11) % 8}):
        first, *others = (library.causal(mechanism, q, k, v, block=block, **taken, **extra) for block in blocks)
        assert np.isfinite(first).all()
        for y in others:
            near(y, first)
    for beyond in ({}, {"keep": np.ones(11, bool)}, {"segment": np.zeros(11, int)}, {"i": np.arange(11)}):
        for block in blocks:
            with pytest.raises(ValueError, match="supports positions 0 … 7, got 10"):
                library.causal(mechanism, q, k, v, block=block, **beyond, **extra)


def test_decoding_past_the_length_gives_nan_and_keeps_the_state():
    mechanism = Linear(feature=Cosformer(length=4))
    q, k, v, _ = inputs(mechanism, 5)
    y, state = extend(mechanism, mechanism.start(4, K, V), q[:4], k[:4], v[:4])
    assert np.isfinite(y).all()
    y, after = extend(mechanism, state, q[4:], k[4:], v[4:])
    assert np.isnan(y).all()
    near(after.memory, state.memory)
    with pytest.raises(ValueError, match="supports positions 0 … 3, got 4"):
        mechanism.extend(state, q[4:], k[4:], v[4:])


def test_list_lines_distinguish_the_feature_maps():
    lines = [registry.first_line(m) for m in MECHANISMS.values() if isinstance(m, Linear)]
    assert len(lines) >= 7
    assert len(set(lines)) == len(lines)
    assert all(line.startswith("Linear attention, φ(x") for line in lines)
