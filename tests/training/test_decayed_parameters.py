"""Checks which parameters weight decay changes in every registered config. Every array is listed here by name."""

import jax
import pytest

from attnlab.mechanisms import MECHANISMS, Bidirectional, Linear, Mamba, ShortConvolution, Softmax
from attnlab.models import MODELS
from attnlab.models.published import PUBLISHED
from attnlab.modules.attention import Attention
from attnlab.modules.position import POSITIONS
from attnlab.modules.recurrent_attention import RecurrentAttention
from attnlab.ops.feature import FEATURES
from attnlab.ops.score import SCORES
from attnlab.tasks.base.shapes import Classes, Image, Pairs, Tokens
from attnlab.tasks.graphs.node_data import NodeClasses
from attnlab.tasks.synthetic.associations import AssociationShape
from attnlab.tasks.synthetic.filtering import ConvolutionShape
from attnlab.tasks.text.documents import PairOfDocuments
from attnlab.tasks.vision.generation import Generated
from attnlab.tasks.vision.objects import Detections
from attnlab.training.optimiser import decays

# Parameters of mechanisms, besides projections, that are kernels or matrices of linear maps. All others are exempt from
# decay: biases, scales, logits and constants of gates, for example Mamba's matrix of decay rates (as in its authors'
# code).
MATRICES = {
    "local-p": {"w_p"},
    "linformer": {"project_k", "project_v"},
    "sinkhorn": {"sort"},
    "synthesizer": {"w", "u"},
    "hedgehog": {"query_w", "key_w"},
    "short-convolution": {"conv_q", "conv_k"},
}
OTHERS = {
    "convolved-mamba": (ShortConvolution(Mamba()), {"conv_q", "conv_k"}),
    "both-ways-mamba": (Bidirectional(Mamba()), set()),
    "general": (Softmax(score=SCORES["general"]), {"w"}),
    "additive": (Softmax(score=SCORES["additive"], sink="learned"), {"w_q", "w_k"}),
    "concat": (Softmax(score=SCORES["concat"]), {"w"}),
    "location": (Softmax(score=SCORES["location"]), {"w"}),
    "gat": (Softmax(score=SCORES["gat"]), {"a"}),
    "cosine": (Softmax(score=SCORES["cosine"]), set()),
    "t2r": (Linear(feature=FEATURES["t2r"]), {"w"}),
    "hedgehog-exp": (Linear(feature=FEATURES["hedgehog-exp"]), {"query_w", "key_w"}),
    "rebased": (Linear(feature=FEATURES["rebased"]), set()),
}
CASES = {name: (mechanism, MATRICES.get(name, set())) for name, mechanism in MECHANISMS.items()} | OTHERS


def flags(create):
    """Returns whether each array is decayed, by its path."""
    shapes = jax.eval_shape(create)
    paths = (jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in jax.tree.leaves_with_path(shapes))
    return dict(zip((path.removesuffix(".value") for path in paths), jax.tree.leaves(decays(shapes)), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_of_a_mechanism_matrices_alone_are_decayed(name):
    mechanism, matrices = CASES[name]
    assert matrices <= set(mechanism.learned)
    modules = [lambda: Attention(jax.random.key(0), 8, 2, mechanism, key_heads=1)]
    if mechanism.traits.non_causal and not mechanism.traits.self_only:
        modules.append(lambda: RecurrentAttention(jax.random.key(0), 8, 8, 2, mechanism))
    for module in modules:
        for path, decayed in flags(module).items():
            part, last = path.split(".")[-2:]
            assert decayed == (last in matrices if part == "learned" else last == "w"), path


# The arrays of all models, by the end of their path. Linear maps, kernels and recurrent matrices are decayed (`q`,
# `k.key` and `k.value` belong to the associative memory).
DECAYED = {"w", "u", "q", "key", "value", "learned.w", "learned.w_q", "learned.w_k", "learned.a"}
SPARED = {
    "b", "bias", "inner", "scale", "shift", "gamma", "offset", "table", "embed", "token", "vectors", "rows", "columns",
    "centres", "sharpness", "points", "place", "skip", "residual", "learned.rate", "learned.shift",
}  # fmt: skip
VECTORS = {("bahdanau", "learned.w")}  # the last layer of the additive score, with one output
SHAPES = {
    **dict.fromkeys(["transformer", "seq2seq", "bahdanau", "luong"], Pairs(9, 9, 8, 8)),
    **dict.fromkeys(["language", *PUBLISHED, "recurrent", "convolutional"], Tokens(9, 8)),
    **dict.fromkeys(["classifier", "bert"], Classes(Tokens(9, 8), 3)),
    **dict.fromkeys(["vit", "cnn", "mlp"], Classes(Image(28, 28, 1), 3)),
    **dict.fromkeys(["gat", "gcn"], NodeClasses(6, 5, 3)),
    "pair-classifier": PairOfDocuments(Tokens(9, 5), 2),
    "convolution-probe": ConvolutionShape(Image(8, 8, 3), 3),
    "associative-memory": AssociationShape(6, 5, 4),
    "detr": Detections(Image(10, 15, 3), 2, 4),
    "sagan": Generated(Image(8, 8, 1), 5),
}


@pytest.mark.parametrize("name", MODELS)
def test_of_a_model_maps_and_kernels_alone_are_decayed(name):
    for path, decayed in flags(lambda: MODELS[name].create(jax.random.key(0), SHAPES[name])).items():
        names = path.split(".")
        last = ".".join(names[-2:]) if "learned" in names[-2:] else names[-1]
        assert (last in DECAYED) != (last in SPARED), path
        assert decayed == (last in DECAYED and (name, last) not in VECTORS), path


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_are_spared_apart_from_the_maps_of_a_dynamical_system(name):
    held = {}
    jax.eval_shape(lambda: held.update(made=POSITIONS[name].create(jax.random.key(0), 8, 2, 2)))
    leaves = jax.tree.leaves_with_path(decays(held["made"])) if POSITIONS[name].data_driven else []
    assert bool(leaves) == POSITIONS[name].data_driven
    for path, decayed in leaves:
        last = jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(".value").split(".")[-1]
        assert decayed == (name == "floater" and last == "w"), last
