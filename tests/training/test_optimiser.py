"""Checks which parameters weight decay changes."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.lab.study import serialize
from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.models.associative_memory import AssociativeMemory
from attnlab.modules.block import DecoderLayer
from attnlab.modules.conv import Conv, GroupNorm
from attnlab.modules.dense import fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.graph import GraphAttention, GraphConvolution
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.position import POSITIONS
from attnlab.modules.query import AnchoredQueries, LearnedQueries
from attnlab.modules.recurrent import RecurrentLayer
from attnlab.modules.stack import stack_layers
from attnlab.modules.upsample import Upsample
from attnlab.ops.cell import CELLS
from attnlab.ops.score import cosine, gat
from attnlab.tasks.synthetic.associations import AssociationShape
from attnlab.training import state as lane
from attnlab.training.config import Train

TRAIN = Train(warmup=0, schedule="constant", clip=0.0, weight_decay=0.5)
RATE = 0.1
SIZES = LayerConfig(8, 2, 12, "relu", "layer", True, 0.0)
TOLD = LayerConfig(8, 2, 12, "swiglu", "rms", True, 0.0)

MADE = {
    "layers": lambda key: stack_layers([lambda key: DecoderLayer(key, SIZES, MECHANISMS["kda"], Softmax())], key, 2),
    "gated": lambda key: stack_layers([lambda key: DecoderLayer(key, TOLD, MECHANISMS["gated-delta"])], key, 2),
    "short-convolution": lambda key: DecoderLayer(key, SIZES, MECHANISMS["short-convolution"]),
    "hedgehog": lambda key: DecoderLayer(key, SIZES, MECHANISMS["hedgehog"]),
    "rebased": lambda key: DecoderLayer(key, SIZES, MECHANISMS["rebased"]),
    "cosine": lambda key: DecoderLayer(key, SIZES, Softmax(score=cosine)),
    "embed": lambda key: Embed(key, 5, 8),
    "conv": lambda key: {"conv": Conv(key, 3, 4), "norm": GroupNorm(4), "up": Upsample(key, 3, 4)},
    "recurrent": lambda key: {name: RecurrentLayer(key, name, 3, 4, 2, True) for name in CELLS},
    "gat": lambda key: GraphAttention(key, 3, 4, 2, Softmax(score=gat), 0.0),
    "gcn": lambda key: GraphConvolution(key, 3, 4, 0.0),
    "queries": lambda key: {"slots": LearnedQueries(key, 3, 8), "anchors": AnchoredQueries(key, 3, 8)},
    "associative-memory": lambda key: AssociativeMemory(width=4).create(key, AssociationShape(6, 5, 4)),
    "positions": lambda key: {
        name: made.create(fold_key(key, name), 8, 2, 2)
        for name, made in POSITIONS.items()
        if name in ("learned", "learned-2d", "t5", "shaw", "floater")
    },
}

# The last name of every array above. Matrices and kernels of linear maps are decayed (`value`, `key` and `q` belong to
# the associative memory).
DECAYS = {"w", "u", "q", "value", "key", "a", "query_w", "key_w", "conv_q", "conv_k"}
SPARED = {
    "b", "inner", "scale", "shift", "rate", "decay", "log_scale", "query_scale", "query_shift", "key_scale",
    "key_shift", "table", "vectors", "rows", "columns", "numbers", "keys", "values", "first", "place", "points",
    "embed", "bias",
}  # fmt: skip


def lanes(create, train):
    """Returns two lanes without zero arrays, before and after one step with a gradient of zero."""
    begin = partial(lane.start, create, train)
    state = jax.jit(jax.vmap(begin))(jnp.arange(2, dtype=jnp.uint32), jnp.full(2, RATE))
    before = jax.jit(lambda model: jax.tree.map(lambda x: x + 1, model))(state.model)
    loss = lambda model, batch, key: (0.0 * sum(jnp.sum(x) for x in jax.tree.leaves(model)), {})
    step = jax.jit(jax.vmap(partial(lane.step, loss, train), (0, None)))
    after, _ = step(replace(state, model=before), {})
    return before, after.model


def named(model):
    """Yields the path, the last name and the value of every array."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(model):
        whole = jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(".value")
        yield whole, whole.split(".")[-1], np.asarray(leaf)


@pytest.mark.parametrize("name", MADE)
def test_weight_decay_applies_to_matrices_only(name):
    for (path, last, old), (_, _, new) in zip(*map(named, lanes(MADE[name], TRAIN)), strict=True):
        assert (last in DECAYS) != (last in SPARED), path
        # θ − rate · decay · θ = θ · (1 − 0.1 · 0.5), or θ to the bit.
        if last in DECAYS:
            np.testing.assert_allclose(new, 0.95 * old, rtol=1e-6, err_msg=path)
        else:
            np.testing.assert_array_equal(new, old, err_msg=path)


def test_decay_all_applies_to_every_parameter():
    for (path, _, old), (_, _, new) in zip(
        *map(named, lanes(MADE["layers"], replace(TRAIN, decay_all=True))), strict=True
    ):
        np.testing.assert_allclose(new, 0.95 * old, rtol=1e-6, err_msg=path)


@pytest.mark.parametrize(("weight_decay", "reached"), [(0.1, True), (0.0, False)])
def test_older_runs_decay_every_parameter(weight_decay, reached):
    written = serialize.write(Train(weight_decay=weight_decay))
    del written["decay_all"]
    assert serialize.read(written, Train).decay_all is reached
