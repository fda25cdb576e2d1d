import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.maps import with_maps
from attnlab.mechanisms import Softmax
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.query import AnchoredQueries, LearnedQueries, QueryLayer

SIZES = LayerConfig(width=8, heads=2, feedforward=16, activation="relu", norm="layer", norm_first=True, dropout=0.5)
Q, S = 3, 5


def normal(*shape, seed=0):
    return np.float32(np.random.default_rng(seed).normal(size=shape))


def layer():
    return jax.jit(lambda: QueryLayer(jax.random.key(0), SIZES, Softmax(), Softmax()))()


WHERE = normal(S, 8, seed=3)
ask = jax.jit(lambda layer, *given: layer(*given))


def test_the_output_follows_the_order_of_queries_and_ignores_that_of_the_memory():
    x, place, context = normal(Q, 8), normal(Q, 8, seed=1), normal(S, 8, seed=2)
    y, looks = ask(layer(), x, place, context, WHERE)
    assert looks == {"query_attention": None, "cross": None}
    order, other = [2, 0, 1], [3, 1, 4, 0, 2]
    np.testing.assert_allclose(
        ask(layer(), x[order], place[order], context[other], WHERE[other])[0], y[jnp.array(order)], atol=1e-5
    )


def test_a_query_attends_to_all_queries_and_the_whole_memory():
    model, given = layer(), (normal(Q, 8), normal(Q, 8, seed=1), normal(S, 8, seed=2), WHERE)
    first = jax.jit(jax.grad(lambda *given: model(*given)[0][0].sum(), (0, 1, 2, 3)))(*given)
    assert all((np.abs(each).sum(axis=1) > 1e-6).all() for each in first)
    _, looks = ask(with_maps(layer()), *given)
    assert {name: look.shape for name, look in looks.items()} == {"query_attention": (2, Q, Q), "cross": (2, Q, S)}
    for look in looks.values():
        np.testing.assert_allclose(look.sum(axis=-1), 1, rtol=1e-5)


def test_equal_queries_without_positions_stay_equal():
    """Queries differ only by their positions."""
    x, context = np.tile(normal(1, 8), (Q, 1)), normal(S, 8, seed=2)
    same, _ = ask(layer(), x, np.zeros_like(x), context, WHERE)
    np.testing.assert_allclose(same[0], same[1], atol=1e-6)
    apart, _ = ask(layer(), x, normal(Q, 8, seed=1), context, WHERE)
    assert np.abs(apart[0] - apart[1]).max() > 1e-2


def test_values_have_no_positions():
    """Carion et al. 2020, appendix A.3: positions are added to queries and keys only."""
    model, given = (
        layer(),
        [jnp.asarray(each) for each in (normal(Q, 8), normal(Q, 8, seed=1), normal(S, 8, seed=2), WHERE)],
    )
    x, place, context, where = given
    norm = lambda around, x: around.norm(x)
    own, cross = model.attention, model.cross
    lay = norm(model.around_attention, x)
    told = own.keys_values(lay + place)
    x = x + own.cross(lay + place, told | {"v": own.keys_values(lay)["v"]})[0]
    lay = norm(model.around_cross, x)
    told = cross.keys_values(where) | {"v": cross.keys_values(context)["v"]}
    x = x + cross.cross(lay + place, told)[0]
    y = x + model.feedforward(norm(model.around_feedforward, x), None)
    np.testing.assert_allclose(ask(model, *given)[0], y, atol=1e-5)


def test_dropout_needs_a_key_and_differs_by_it():
    model, given = layer(), (normal(Q, 8), normal(Q, 8, seed=1), normal(S, 8, seed=2), WHERE)
    np.testing.assert_array_equal(ask(model, *given)[0], ask(model, *given)[0])
    one, other = (ask(model, *given, jax.random.key(n))[0] for n in (1, 2))
    assert np.abs(one - other).max() > 0.01


def test_slots_have_no_positions():
    place, points = LearnedQueries(jax.random.key(0), Q, 8)(4.0, 6.0)
    assert place.shape == (Q, 8)
    np.testing.assert_array_equal(points, np.zeros((Q, 2)))


def test_an_anchor_has_the_encoding_of_its_grid_cell():
    anchors = AnchoredQueries(jax.random.key(0), 2, 8)
    anchors.dense.w[...] = jnp.eye(8)
    rows, columns = 4, 6
    # The centres of row 1, column 2, and of row 3, column 5, counted from 0.
    share = np.array([[2.5 / columns, 1.5 / rows], [5.5 / columns, 3.5 / rows]])
    anchors.points[...] = jnp.float32(np.log(share / (1 - share)))
    place, points = anchors(float(rows), float(columns))
    told = lambda *angles: [f(at / speed) for at in angles for speed in (1, 100) for f in (np.sin, np.cos)]
    np.testing.assert_allclose(place, [told(1, 2), told(3, 5)], atol=1e-5)
    # The encoding of DETR for the second row of four and third column of six, and for the last row and column.
    anchors.normalised = True
    turn = 2 * np.pi
    place, _ = anchors(float(rows), float(columns))
    np.testing.assert_allclose(place, [told(turn * 2 / 4, turn * 3 / 6), told(turn, turn)], atol=1e-5)
    np.testing.assert_allclose(jax.nn.sigmoid(points), share, rtol=1e-5)


def test_initial_anchors_cover_the_image():
    points = np.asarray(jax.nn.sigmoid(AnchoredQueries(jax.random.key(0), 400, 8).points[...]))
    assert points.min() >= 0.05
    assert points.max() <= 0.95
    counts = np.histogram2d(*points.T, bins=2, range=[[0, 1], [0, 1]])[0]
    assert counts.min() > 70
