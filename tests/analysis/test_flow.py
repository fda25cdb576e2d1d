"""Checks that variances and norms by layer equal those computed from all numbers, and that no part is left out."""

import jax
import numpy as np
import optax

from attnlab.analysis.flow import gradient, parts, variances
from attnlab.analysis.scores import scores
from attnlab.mechanisms import MECHANISMS
from attnlab.models import Classifier, Language, Transformer
from attnlab.models.seq2seq import Seq2Seq
from attnlab.tasks.base.shapes import Classes, Pairs, Tokens
from tests.analysis.filled import filled

SHAPE = Pairs(9, 9, 6, 5)
CONFIG = Transformer(width=8, heads=2, layers=2)


def test_the_variance_is_that_of_all_scores_of_a_layer_together():
    shape, config = Tokens(9, 5), Language(width=4, heads=2, layers=2)
    tokens = np.array([[3, 4, 5, 6, 0], [7, 8, 7, 8, 7], [0] * 5], np.int32)
    model, keep = filled(config, shape), tokens > 0
    found = variances(model, tokens, keep)["decoder"]
    rows = [np.asarray(scores(model, *row)["decoder"], np.float64) for row in zip(tokens, keep, strict=True)]
    layers = np.stack(rows, axis=1).reshape(2, -1)
    np.testing.assert_allclose(found, [np.var(layer[np.isfinite(layer)]) for layer in layers], rtol=1e-5)
    # Two layers and two heads, with the causal pairs of four and of five tokens.
    assert np.isfinite(layers).sum() == 2 * 2 * (10 + 15)


def test_without_scores_there_is_no_variance():
    shape = Tokens(9, 4)
    config = Language(width=4, heads=1, layers=1, mechanism=MECHANISMS["synthesizer"].with_length(4))
    tokens = np.array([[3, 4, 5, 6]], np.int32)
    assert np.isnan(variances(filled(config, shape), tokens, tokens > 0)["decoder"]).all()


def test_the_parts_of_a_transformer():
    model = filled(CONFIG, SHAPE)
    found = parts(model)
    assert list(found) == [
        "source embedding",
        *(f"encoder {n} {name}" for n in (1, 2) for name in ("attention", "feedforward")),
        "encoder norm",
        "target embedding",
        *(f"decoder {n} {name}" for n in (1, 2) for name in ("attention", "cross", "feedforward")),
        "decoder norm",
        "output",
    ]
    np.testing.assert_allclose(np.sqrt(sum(x**2 for x in found.values())), optax.tree.norm(model), rtol=1e-5)
    # The second layer and its norm.
    stack = model.decoder
    inside = [np.asarray(x)[1] for x in jax.tree.leaves((stack.cross, stack.around_cross))]
    np.testing.assert_allclose(found["decoder 2 cross"], np.sqrt(sum((x**2).sum() for x in inside)), rtol=1e-5)


def test_the_parts_of_an_encoder_that_is_one_part_of_a_network():
    model = filled(Classifier(width=8, heads=2, pool="token"), Classes(Tokens(9, 6), 3))
    found = parts(model)
    assert list(found) == [
        "input",
        "encoder",
        *(f"encoder {n} {name}" for n in (1, 2) for name in ("attention", "feedforward")),
        "output",
        "token",
    ]
    np.testing.assert_allclose(np.sqrt(sum(x**2 for x in found.values())), optax.tree.norm(model), rtol=1e-5)


def test_the_parts_of_a_recurrent_network():
    model = filled(Seq2Seq(width=4, layers=2, attention="luong"), SHAPE)
    found = parts(model)
    assert list(found) == [
        *("source embedding", "encoder 1", "encoder 2", "bridge", "target embedding", "decoder 1", "decoder 2"),
        *("reader", "joint", "output"),
    ]
    np.testing.assert_allclose(np.sqrt(sum(x**2 for x in found.values())), optax.tree.norm(model), rtol=1e-5)


def test_the_gradient_of_a_loss_by_part():
    model = filled(CONFIG, SHAPE)

    def loss(model, batch, key):
        assert key is None, "dropout"
        # Half the sum of squares of one layer, whose gradient is the layer itself, plus twice the output's bias.
        return 0.5 * (model.decoder.cross.q.w[1] ** 2).sum() + batch["two"] * model.output.b[...].sum(), {}

    value, found = gradient(loss, model, {"two": np.float32(2)})
    w = np.asarray(model.decoder.cross.q.w[...])[1]
    np.testing.assert_allclose(value, 0.5 * (w**2).sum() + 2 * model.output.b[...].sum(), rtol=1e-5)
    back = {name: norms["gradient"] for name, norms in found.items() if norms["gradient"]}
    assert set(back) == {"decoder 2 cross", "output"}
    np.testing.assert_allclose([*back.values()], [np.linalg.norm(w), 2 * np.sqrt(9)], rtol=1e-5)
    assert {name: norms["parameters"] for name, norms in found.items()} == parts(model)
