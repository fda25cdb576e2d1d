"""Numerical checks of facts about attention, and of common false statements about it, on the mechanisms themselves."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.ops.conv import conv_1d, conv_2d
from attnlab.ops.feature import EluPlusOne, Identity
from attnlab.ops.mask import Causal, Edges, Full
from attnlab.ops.position import rotary, sinusoidal
from attnlab.ops.score import dot, scaled_dot
from attnlab.ops.softmax import masked_softmax
from tests.mechanisms.contract import attend, inputs, weights

pytestmark = pytest.mark.usefixtures("x64")
LINEAR = [name for name, mechanism in MECHANISMS.items() if isinstance(mechanism, Linear)]
UNNORMALISED = Linear(feature=Identity(), normalise=False)


def normal(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=shape)) for shape in shapes]


def rank(matrix):
    """Returns the number of singular values above 1e-10 of the largest.

    Rounding in float64 leaves about 1e-16 of it.
    """
    values = np.linalg.svd(np.asarray(matrix), compute_uv=False)
    return int((values > 1e-10 * values[0]).sum())


# Why scores are scaled by √K.


@pytest.mark.parametrize("K", [16, 256])
def test_dot_products_have_variance_k_and_scaled_ones_one(K):
    N = 20_000
    q, k = normal(K, (N, K), (N, K))
    products = jax.jit(jax.vmap(lambda q, k: jnp.stack([dot(q, k)[0, 0], scaled_dot(q, k)[0, 0]])))
    for found, expected in zip(np.var(products(q[:, None], k[:, None]), axis=0), (K, 1), strict=True):
        # The excess kurtosis of q·k is 6/K, so this is the standard error of a variance over N pairs.
        error = expected * np.sqrt((2 + 6 / K) / N)
        assert abs(found - expected) <= 4 * error
        assert error <= 0.011 * expected


def test_unscaled_scores_saturate_softmax_and_shrink_its_gradient():
    def shares(score, K, T=64):
        q, k = normal(K, (T, K), (T, K))
        return np.asarray(jax.jit(lambda q, k: masked_softmax(score(q, k), np.ones((T, T), bool)))(q, k))

    def slope(score, K):
        """Returns the norm of the derivative of the weights by their scores, diag(w) − wᵀw, averaged over queries."""
        return np.mean([np.linalg.norm(np.diag(w) - np.outer(w, w)) for w in shares(score, K)])

    widths = (4, 64, 1024)
    scaled, unscaled = ([slope(score, K) for K in widths] for score in (scaled_dot, dot))
    # Scaled scores have similar derivatives at all widths. For unscaled scores, the derivative falls as the width
    # grows, and vanishes for most queries.
    assert max(scaled) <= 1.5 * min(scaled)
    assert unscaled == sorted(unscaled, reverse=True)
    assert unscaled[-1] < 0.5 * unscaled[0]
    assert np.median(shares(dot, 1024).max(axis=1)) > 0.99
    assert np.median(shares(scaled_dot, 1024).max(axis=1)) < 0.3


# The gradient.


def test_the_gradient_of_softmax_attention_by_its_query():
    q, k, v, _ = inputs(Softmax(), 5, 7)
    found = jax.jit(jax.jacobian(lambda q: Softmax().attend(q, k, v)))(q)
    alpha, k, v = (np.asarray(x) for x in (weights(Softmax(), q, k), k, v))
    root, diagonal = np.sqrt(q.shape[1]), []
    for t in range(5):
        mean = sum(alpha[t, m] * k[m] for m in range(7))
        # ∂y_t/∂q_t = (1/√K) Σ_n α_tn v_nᵀ (k_n − Σ_m α_tm k_m), [V K]
        formula = sum(alpha[t, n] * np.outer(v[n], k[n] - mean) for n in range(7)) / root
        np.testing.assert_allclose(found[t, :, t], formula, atol=1e-12)
        alone = sum(alpha[t, n] * (1 - alpha[t, n]) * np.outer(v[n], k[n]) for n in range(7)) / root
        diagonal.append(np.abs(found[t, :, t] - alone).max() / np.abs(formula).max())
        assert not np.any(np.delete(found[t], t, axis=1)), "y_t depends on no other query"
    assert min(diagonal) > 0.05, "the diagonal of softmax's Jacobian is not the whole of it"


# Rank.


@pytest.mark.parametrize("name", LINEAR)
def test_the_rank_of_a_linear_map_is_at_most_the_number_of_features(name):
    mechanism, T = MECHANISMS[name], 40
    q, k, _, extra = inputs(mechanism, T)
    M = mechanism.feature.dim(q.shape[1])
    assert rank(weights(mechanism, q, k, **extra)) <= M
    causal = weights(mechanism, q, k, Causal(), **extra)
    assert rank(causal[T // 2 :, : T // 2]) <= M


def test_softmax_has_no_such_bound():
    # In exact arithmetic the rank is full. T is small enough for float64 to show this.
    q, k, _, _ = inputs(Softmax(), 16)
    assert rank(weights(Softmax(), q * 3, k)) == 16
    elu = Linear(feature=EluPlusOne())
    assert rank(weights(elu, q * 3, k)) == 4


def test_causal_maps_have_full_rank_and_off_diagonal_blocks_of_linear_ones_do_not():
    q, k, _, _ = inputs(Softmax(), 16)
    soft, linear = (weights(mechanism, q * 3, k, Causal()) for mechanism in (Softmax(), Linear()))
    for map_ in (soft, linear):
        assert not np.triu(map_, 1).any()
        assert np.diagonal(map_).min() > 0, "a triangle with no zero on its diagonal has full rank"
    assert rank(soft[8:, :8]) == 8
    assert rank(linear[8:, :8]) == 4


# What heads do.

H, WIDTH, T = 3, 4, 16


def by_heads(mechanism):
    """Returns q, k, v [H T K], the output of each head [H T K], and the map of each head [H T T]."""
    q, k, v = normal(5, *[(H, T, WIDTH)] * 3)
    y, maps = jax.jit(jax.vmap(lambda q, k, v: (mechanism.attend(q, k, v), mechanism.attend(q, k, jnp.eye(T)))))(
        q, k, v
    )
    return *(np.asarray(x) for x in (q, k, v, y)), list(np.asarray(maps))


def joined(x):
    """Concatenates heads [H T K] into [T H·K]."""
    return np.moveaxis(np.asarray(x), 0, 1).reshape(x.shape[1], -1)


def test_unnormalised_linear_heads_are_one_head_that_keeps_its_diagonal_blocks():
    q, k, v, y, maps = by_heads(UNNORMALISED)
    state = joined(k).T @ joined(v)
    blocks = np.kron(np.eye(H), np.ones((WIDTH, WIDTH)))
    np.testing.assert_allclose(joined(y), joined(q) @ (state * blocks), atol=1e-10)
    one = attend(UNNORMALISED, joined(q), joined(k), joined(v))
    np.testing.assert_allclose(one, joined(q) @ state, atol=1e-10)
    assert np.abs(joined(y) - one).max() > 1, "the other blocks are what one wide head has and heads have not"
    assert [rank(each) for each in maps] == [WIDTH] * H
    assert rank(np.concatenate(maps)) == H * WIDTH


def test_softmax_raises_the_rank_of_every_head():
    _, _, _, _, maps = by_heads(Softmax())
    assert [rank(each) for each in maps] == [T] * H


def test_linear_heads_are_one_only_where_they_share_scores_or_values():
    q, k, v, _, maps = by_heads(UNNORMALISED)
    out = np.random.default_rng(6).normal(size=(H, WIDTH, WIDTH))
    y = lambda q, v: np.stack([attend(UNNORMALISED, q[h], k[h], v[h]) for h in range(H)])
    mixed = lambda y: np.einsum("htv,hvd->td", y, out)
    # If scores and values differ between heads, the maps differ.
    assert min(np.abs(maps[one] - maps[other]).max() for one, other in ((0, 1), (0, 2), (1, 2))) > 1
    # If the scores are the same, the heads equal one head whose values are Σ_h v_h W_h.
    alike = np.stack([attend(UNNORMALISED, q[0], k[0], v[h]) for h in range(H)])
    np.testing.assert_allclose(mixed(alike), attend(UNNORMALISED, q[0], k[0], mixed(v)), atol=1e-9)
    # If the values after W_h are the same, the heads equal one head of width H·K.
    shared = np.stack([v[0]] * H)
    wide = attend(UNNORMALISED, joined(q), joined(k), v[0])
    np.testing.assert_allclose(y(q, shared).sum(axis=0), wide, atol=1e-9)


# Order.


@pytest.mark.parametrize("name", ["softmax", "sigmoid", "linear", "performer", "taylor"])
def test_without_positions_and_unmasked_attention_is_permutation_equivariant(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 9)
    order = np.random.default_rng(1).permutation(9)

    def apart(move, mask=Full()):
        """Returns the difference between permuting the inputs and permuting the outputs. `move` may add positions."""
        mixed = attend(mechanism, *(move(x) for x in (q, k)), v, mask, **extra)
        permuted = attend(mechanism, *(move(x[order]) for x in (q, k)), v[order], mask, **extra)
        return float(jnp.abs(permuted - mixed[order]).max())

    at = jnp.arange(9, dtype=jnp.int32)
    assert apart(lambda x: x) < 1e-12
    assert apart(lambda x: x + sinusoidal(at, 4, x.dtype)) > 1e-3
    assert apart(lambda x: rotary(jnp.asarray(x), at)) > 1e-3
    assert apart(lambda x: x, Causal()) > 1e-3, "a causal mask alone tells tokens apart"


@pytest.mark.parametrize("name", ["linformer", "synthesizer"])
def test_mechanisms_with_parameters_per_position_are_not_equivariant(name):
    mechanism = MECHANISMS[name].with_length(9)
    q, k, v, extra = inputs(mechanism, 9)
    order = np.random.default_rng(1).permutation(9)
    permuted = attend(mechanism, q[order], k[order], v[order], **extra)
    assert np.abs(permuted - attend(mechanism, q, k, v, **extra)[order]).max() > 1e-3


# A convolution is a special case of self-attention (Cordonnier et al. 2020).


def convolution_by_attention(x, w, scale=50.0, border=True, width=None):
    """Computes a convolution with H = k² heads, whose scores depend on relative positions only and select one pixel.

    Head h scores the shift δ from query to key by r_δ·u_h = −scale |δ − Δ_h|² + a constant of the query, with r_δ =
    (|δ|², δ₁, δ₂) (theorem 1). The keys are all pixels and, if `border`, the zeros around the image. The weights w of
    each head are factored into W_v and W_o, with `width` features between them.
    """
    (rows, columns, C), (size, _, _, D) = x.shape, w.shape
    reach = (size - 1) // 2
    around = reach if border else 0
    padded = jnp.pad(x, [(around, around)] * 2 + [(0, 0)])
    grid = lambda height, breadth: jnp.stack(jnp.indices((height, breadth)), axis=-1).reshape(-1, 2)
    queries, keys = grid(rows, columns), grid(rows + 2 * around, columns + 2 * around) - around
    shifts = (grid(size, size) - reach).astype(x.dtype)
    width = min(C, D) if width is None else width
    left, values, right = jnp.linalg.svd(w.reshape(size * size, C, D), full_matrices=False)
    w_v, w_o = left[:, :, :width] * values[:, None, :width], right[:, :width]

    def head(shift, w_v, w_o):
        u = -scale * jnp.concatenate([jnp.ones(1), -2 * shift])

        def score(q, i, j):
            delta = (keys[j][None, :, :] - queries[i][:, None, :]).astype(x.dtype)
            return jnp.concatenate([jnp.sum(delta**2, axis=-1, keepdims=True), delta], axis=-1) @ u

        i, j = jnp.arange(len(queries)), jnp.arange(len(keys))
        content = jnp.zeros((len(queries), 1)), jnp.zeros((len(keys), 1))
        return Softmax().attend(*content, padded.reshape(-1, C) @ w_v, i=i, j=j, bias=score) @ w_o

    return jax.vmap(head)(shifts, w_v, w_o).sum(axis=0).reshape(rows, columns, D)


@pytest.mark.parametrize(("C", "D"), [(3, 5), (4, 2)])
def test_attention_reproduces_a_convolution_to_rounding(C, D):
    x, w = normal(C, (5, 6, C), (3, 3, C, D))
    run = jax.jit(convolution_by_attention, static_argnames=("scale", "border", "width"))
    exact = conv_2d(x, w)
    apart = lambda y: np.abs(np.asarray(y - exact)) / np.abs(exact).max()
    assert apart(run(x, w)).max() <= 1e-14
    # The equality needs a scale at which softmax selects one key, zeros around the image, and values that are wide
    # enough.
    assert apart(run(x, w, scale=5.0)).max() > 1e-3
    bare = apart(run(x, w, border=False))
    assert bare[1:-1, 1:-1].max() <= 1e-14
    assert bare.max() > 1e-2
    assert apart(run(x, w, width=min(C, D) - 1)).max() > 1e-2


def test_two_stacked_filters_of_width_three_have_a_receptive_field_of_five():
    x, one, other = normal(0, (11, 1), (3, 1, 1), (3, 1, 1))
    seen = jax.jacobian(lambda x: conv_1d(conv_1d(x, one), other)[5, 0])(x)[:, 0]
    np.testing.assert_array_equal(np.flatnonzero(seen), [3, 4, 5, 6, 7])


# Cost.


def test_softmax_costs_grow_quadratically_and_linear_attention_linearly():
    grown = lambda mechanism: mechanism.cost(4096, 4096, 64, 64).flops / mechanism.cost(2048, 2048, 64, 64).flops
    assert grown(Softmax()) == pytest.approx(4, rel=0.01)
    assert grown(Linear()) == pytest.approx(2, rel=0.01)
    # The last product of linear attention costs O(T·M·V), as the first one does, and not O(T·D).
    M = 64
    flops = Linear(normalise=False).cost(1000, 1000, M, 32).flops
    assert flops >= 1000 * M * 32 * 2 * 2


def test_decoding_costs_grow_with_the_past_in_softmax_and_are_constant_in_linear_attention():
    past = (256, 512, 1024)
    soft = [Softmax().cost(1, n, 64, 64) for n in past]
    for shorter, longer in itertools.pairwise(soft):
        assert longer.flops == 2 * shorter.flops
        assert longer.bytes / shorter.bytes == pytest.approx(2, rel=0.02)
        assert longer.state_bytes == 2 * shorter.state_bytes

    def counted(mechanism, length):
        """Returns the operations and bytes of one step with a state for `length` tokens, as counted by the compiler."""
        state = mechanism.start(length, 64, 64, jnp.float32)
        token = jnp.ones((1, 64), jnp.float32)
        told = jax.jit(mechanism.extend).lower(state, token, token, token).compile().cost_analysis()
        return told["flops"], told["bytes accessed"]

    assert len({Linear().cost(n, n, 64, 64, 1).state_bytes for n in past}) == 1
    assert len({counted(Linear(), n) for n in past}) == 1
    (few, little), (many, much) = counted(Softmax(), 256), counted(Softmax(), 1024)
    assert 3 < many / few < 5
    assert 3 < much / little < 5


# Positions.


def test_projected_sinusoids_no_longer_depend_on_distance_alone():
    p = sinusoidal(jnp.arange(20, dtype=jnp.int32), 16, jnp.float64)
    w_q, w_k = normal(0, (16, 16), (16, 16))
    plain, projected = p @ p.T, (p @ w_q) @ (p @ w_k).T
    for distance in (0, 3):
        assert np.ptp(np.diagonal(plain, distance)) < 1e-10
        assert np.ptp(np.diagonal(projected, distance)) > 1


def test_rotation_before_a_feature_map_is_not_relative_and_after_it_can_be_negative():
    feature, at = EluPlusOne(), jnp.arange(24, dtype=jnp.int32)
    q, k = (jnp.tile(x, (24, 1)) for x in normal(2, (1, 2), (1, 2)))
    phi = lambda x: feature.query(x, at).rows
    before = phi(rotary(q, at)) @ phi(rotary(k, at)).T
    after = rotary(phi(q), at) @ rotary(phi(k), at).T
    assert np.ptp(np.diagonal(before, 3)) > 0.1
    assert (before > 0).all()
    assert np.ptp(np.diagonal(after, 3)) < 1e-10
    assert (after < 0).any()


# Common statements that are false.


def test_the_softmax_is_over_keys():
    q, k, _, _ = inputs(Softmax(), 5, 7)
    map_ = weights(Softmax(), q, k)
    np.testing.assert_allclose(map_.sum(axis=1), np.ones(5), atol=1e-12)
    assert np.abs(map_.sum(axis=0) - 5 / 7).max() > 0.1


def test_a_score_of_zero_has_weight_and_a_missing_edge_has_none():
    q, k, _, _ = inputs(Softmax(), 4)
    edges = np.array([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1]], bool)
    map_ = weights(Softmax(), q, k, Edges(edges))
    zeroed = masked_softmax(jnp.where(edges, scaled_dot(jnp.asarray(q), jnp.asarray(k)), 0), jnp.ones((4, 4), bool))
    assert not np.any(map_[~edges])
    assert (zeroed[~edges] > 0.01).all()
    # Setting weights to zero after the softmax does not suffice either: the remaining weights no longer sum to one.
    struck = weights(Softmax(), q, k) * edges
    assert (struck.sum(axis=1) < 0.999).all()
    np.testing.assert_allclose(struck / struck.sum(axis=1, keepdims=True), map_, atol=1e-12)


def test_the_published_rounded_example_comes_from_rounded_weights():
    scores, v = np.array([[2.0, 4, 4]]), np.array([[1.0, 2, 3], [2, 8, 0], [2, 6, 3]])
    share = masked_softmax(jnp.asarray(scores), jnp.ones((1, 3), bool))
    np.testing.assert_allclose(share @ v, [[1.93662106, 6.68310531, 1.59506841]], atol=5e-9)
    np.testing.assert_array_equal(np.floor(2 * np.asarray(share) + 0.5) / 2 @ v, [[2.0, 7.0, 1.5]])
