"""Gradients of models inside `jax.shard_map`, with the same weights on all devices and other examples on each."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from attnlab import MECHANISMS, TASKS
from attnlab.models import Language, Transformer
from attnlab.models.detr import Detr
from attnlab.models.seq2seq import Seq2Seq
from attnlab.tasks.base.shapes import Image
from attnlab.tasks.vision.objects import Detections

SMALL = {"width": 8, "heads": 2, "layers": 2}
CASES = {
    "transformer": ("reverse", Transformer(**SMALL)),
    "linear transformer": ("reverse", Transformer(**SMALL, mechanism=MECHANISMS["linear"])),
    "bahdanau": ("reverse", Seq2Seq(width=8)),
    "luong, one step after another": ("reverse", Seq2Seq(width=8, cell="lstm", attention="luong", input_feeding=True)),
    "language": ("dyck", Language(**SMALL)),
    "delta language": ("dyck", Language(**SMALL, mechanism=MECHANISMS["gated-delta"])),
}


def gradient_types(loss, model, batch):
    """Returns the shapes of the gradient of the mean loss over devices."""
    mesh = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,))
    back = jax.grad(lambda model, batch, key: jax.lax.pmean(loss(model, batch, key), "data"))
    specs = P(), P("data"), P()
    return jax.eval_shape(
        jax.shard_map(back, mesh=mesh, in_specs=specs, out_specs=P()), model, batch, jax.random.key(1)
    )


def shapes(tree):
    return [x.shape for x in jax.tree.leaves(tree)]


@pytest.mark.parametrize("name", CASES)
def test_gradients_inside_shard_map(name):
    task, config = CASES[name]
    problem = TASKS[task].load()
    model = config.create(jax.random.key(0), problem.shape)
    loss = lambda model, batch, key: problem.loss(model, batch, key)[0]
    with jax.numpy_dtype_promotion("standard"):  # losses of tasks promote
        found = gradient_types(loss, model, problem.batch(0, 0, 2))
    assert shapes(found) == shapes(model)


def test_learned_queries_inside_shard_map():
    """The first layer receives queries that are the same on all devices, and the last one returns others on each."""
    model = Detr(**SMALL, queries=3).create(jax.random.key(0), Detections(Image(16, 16, 3), 2, 3))
    loss = lambda model, images, key: sum((y**2).sum() for y in jax.tree.leaves(jax.vmap(model)(images)))
    found = gradient_types(loss, model, jnp.zeros((2, 16, 16, 3)))
    assert shapes(found) == shapes(model)
