import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models.detr import Detr
from attnlab.modules.position import Floater, Learned2D, Position
from attnlab.tasks.base.shapes import Image, Tokens
from attnlab.tasks.vision.objects import Detections

from .training import filled

SHAPE = Detections(Image(10, 15, 3), classes=2, most=4)
SMALL = {"width": 8, "heads": 2, "layers": 1, "queries": 5, "channels": 4, "stages": 2}
PLACES = 3 * 4  # 10 × 15 halved twice, rounded up
answer = jax.jit(lambda model, *given: model(*given))


def image(seed=0):
    return np.float32(np.random.default_rng(seed).normal(size=(10, 15, 3)))


@pytest.mark.parametrize("anchored", [True, False])
def test_after_every_layer_a_class_and_a_box_for_each_query(anchored):
    model = filled(Detr(anchored=anchored, **SMALL | {"layers": 2}), SHAPE)
    scores, boxes = answer(model, image())
    assert scores.shape == (2, 5, 3)
    assert boxes.shape == (2, 5, 4)
    assert scores.dtype == boxes.dtype == np.float32
    assert (boxes > 0).all()
    assert (boxes < 1).all()
    # The boxes of different queries differ far beyond rounding (6e-8), and the image has an effect.
    assert np.abs(np.diff(boxes[-1], axis=0)).max(axis=1).min() > 1e-5
    assert np.abs(answer(model, image(1))[0] - scores).max() > 1e-4


@pytest.mark.parametrize("channels", [1, 6, 7, 12, 20])
def test_a_stage_may_have_any_width(channels):
    config = Detr(**SMALL | {"channels": channels, "stages": 3})
    features = jax.eval_shape(lambda: config.create(jax.random.key(0), SHAPE)).features
    assert all(1 <= norm.groups <= 8 for norm in (*features.norms, *features.others))


def test_initial_boxes_are_at_the_anchors_of_their_queries():
    model = jax.jit(lambda: Detr(**SMALL).create(jax.random.key(0), SHAPE))()
    _, boxes = answer(model, image())
    stand = jax.nn.sigmoid(model.queries.points[...])
    np.testing.assert_allclose(boxes[..., :2], np.broadcast_to(stand, (1, 5, 2)), atol=0.06)


@pytest.mark.parametrize(("height", "width"), [(16, 24), (17, 22)])
def test_an_anchor_on_a_grid_cell_has_its_position_encoding(height, width):
    shape = Detections(Image(height, width, 3), classes=2, most=4)
    model = jax.jit(lambda: Detr(**SMALL).create(jax.random.key(0), shape))()
    halved = lambda x: model.features.half[1](model.features.half[0](x))[1, 2].sum()
    seen = np.abs(jax.jit(jax.grad(halved))(jnp.ones((height, width, 3)))).sum(axis=2)
    rows, columns = (np.nonzero(seen.any(axis=axis))[0] for axis in (1, 0))
    # The centre, in pixels, of the field that position (1, 2) sees. The centre of a pixel is half a pixel after its
    # index.
    share = np.array([(columns[0] + columns[-1] + 1) / 2 / width, (rows[0] + rows[-1] + 1) / 2 / height])
    model.queries.points[...] = jnp.float32(np.tile(np.log(share / (1 - share)), (5, 1)))
    model.queries.dense.w[...] = jnp.eye(8)
    found, _ = model.queries(height / 4, width / 4)
    (there,) = np.asarray(model.encoder.position.add(jnp.zeros((40, 8)), jnp.arange(40)))[None, 1 * 6 + 2]
    np.testing.assert_allclose(found, np.tile(there, (5, 1)), atol=1e-5)
    # The encoding of DETR for the second row, and the third column of six.
    rows = -(-height // 4)
    y, x = 2 * np.pi * 2 / (rows + 1e-6), 2 * np.pi * 3 / (6 + 1e-6)
    told = [f(at / speed) for at in (y, x) for speed in (1, 100) for f in (np.sin, np.cos)]
    np.testing.assert_allclose(there, told, atol=1e-5)


def test_the_order_of_queries_has_no_effect():
    model = filled(Detr(anchored=False, **SMALL), SHAPE)
    scores, boxes = answer(model, image())
    model.queries.place[...] = model.queries.place[...][::-1]
    for turned, before in zip(answer(model, image()), (scores, boxes), strict=True):
        np.testing.assert_allclose(turned, before[:, ::-1], atol=1e-5)


@pytest.mark.parametrize("position", [Learned2D(rows=1, columns=1), Detr().position, Floater(), Position()], ids=str)
def test_memory_positions_differ_between_places_if_there_is_a_position(position):
    """Checks the memory of an image that has no effect: it differs by place if there is a position."""
    model = filled(Detr(position=position, **SMALL), SHAPE)
    model.input_layer.w[...] = model.input_layer.w[...] * 0
    context, where, _ = jax.jit(lambda model, image: model.read(image))(model, image())
    assert context.shape == where.shape == (PLACES, 8)
    apart = np.abs(np.diff(where, axis=0)).max(axis=1)
    assert (apart < 1e-5).all() if type(position) is Position else (apart > 1e-3).all()


def test_maps_are_rows_of_weights():
    config = Detr(**SMALL)
    seen = attention_maps(filled(config, SHAPE), image())
    assert {name: look.shape for name, look in seen.items()} == {
        "encoder": (1, 2, PLACES, PLACES), "query_attention": (1, 2, 5, 5), "cross": (1, 2, 5, PLACES),
    }  # fmt: skip
    for look in seen.values():
        np.testing.assert_allclose(look.sum(-1), 1, rtol=1e-5)


def test_each_attention_has_the_mechanism_of_the_config_or_its_own():
    assert set(Detr(mechanism=Linear()).attentions.values()) == {Linear()}
    own = Detr(cross=Linear())
    assert own.attentions == {"encoder": Softmax(), "query_attention": Softmax(), "cross": Linear()}
    scores, boxes = answer(filled(Detr(mechanism=Linear(), **SMALL), SHAPE), image())
    assert np.isfinite(scores).all()
    assert np.isfinite(boxes).all()


def test_it_computes_in_its_dtype_with_float32_outputs():
    model = filled(Detr(dtype="bfloat16", **SMALL), SHAPE)
    for found in answer(model, image()):
        assert found.dtype == np.float32
        assert np.isfinite(found).all()


def test_dropout_needs_a_key_and_every_part_has_a_gradient():
    model = filled(Detr(dropout=0.5, **SMALL), SHAPE)
    one, other = (answer(model, image(), jax.random.key(n))[1] for n in (0, 1))
    assert np.abs(one - other).max() > 1e-4
    seen = jax.numpy.asarray(image())
    gradient = jax.jit(jax.grad(lambda m: sum((each**2).sum() for each in m(seen))))(model)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        assert np.isfinite(leaf).all()
        # The bias of a key adds the same number to all scores of a query. The first layer's queries are zero before it.
        silent = ".k.b" in name or name.startswith("decoder.around_attention.norm.scale")
        assert silent or np.abs(leaf).max() > 0, name


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"queries": 0}, "model.queries=0 must be at least 1"),
        ({"channels": 0}, "model.channels=0 must be at least 1"),
        ({"stages": 7}, "model.stages=7 must be in 1 … 6"),
        ({"tied": True}, "model.tied=True is not supported by Detr: images and classes have no embedding"),
        ({"width": 6, "heads": 2, "position": Position()}, "model.width=6 must be divisible by 4 for model.anchored"),
        (
            {"cross": MECHANISMS["delta"]},
            "model.cross=Delta.* supports only causal attention.* use for example model.cross=softmax$",
        ),
        (
            {"mechanism": MECHANISMS["delta"], "query_attention": MECHANISMS["softmax"]},
            "model.mechanism=Delta.* use for example model.encoder=softmax model.cross=softmax$",
        ),
        ({"cross": MECHANISMS["nystrom"]}, "mixes queries"),
    ],
)
def test_invalid_fields_are_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        Detr(**fields)


def test_data_that_do_not_fit_are_refused():
    with pytest.raises(
        ValueError, match=r"model.queries=3 must be at least 4, the maximum number of boxes in an image"
    ):
        Detr(**SMALL | {"queries": 3}).create(jax.random.key(0), SHAPE)
    with pytest.raises(ValueError, match=r"model=Detr needs data with image, classes, most"):
        Detr(**SMALL).create(jax.random.key(0), Tokens(9, 9))
