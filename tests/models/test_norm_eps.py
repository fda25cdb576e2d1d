"""Checks the ε of norms: each model has its authors' value by default, older runs keep 1e-6, and every norm uses it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.lab.study import serialize
from attnlab.models import CNN, MODELS, SAGAN, Bert, Classifier, ConvolutionalLanguage, Detr, Language, Transformer, ViT
from attnlab.modules.conv import GroupNorm
from attnlab.modules.norm import LayerNorm, RMSNorm
from attnlab.tasks.base.shapes import Classes, Frames, Image, Pairs, Tokens
from attnlab.tasks.vision.generation import Generated
from attnlab.tasks.vision.objects import Detections

# Ba et al. give none. Vaswani's and Dosovitskiy's code has 1e-6, Radford's 1e-5, Devlin's 1e-12, and Carion's the
# default of torch.
AUTHORS = {
    Transformer: 1e-6, Language: 1e-5, Classifier: 1e-6, ViT: 1e-6, Bert: 1e-12, Detr: 1e-5, CNN: 1e-5,
    ConvolutionalLanguage: 1e-5, SAGAN: 1e-5,
}  # fmt: skip
IMAGE = Image(8, 8, 1)
SHAPES = {
    Transformer: Pairs(9, 9, 6, 6, False), Language: Tokens(9, 6), ConvolutionalLanguage: Tokens(9, 6),
    Bert: Classes(Tokens(9, 6), 3), Classifier: Classes(Tokens(9, 6), 3), ViT: Classes(IMAGE, 3),
    CNN: Classes(IMAGE, 3), SAGAN: Generated(IMAGE, 4), Detr: Detections(IMAGE, 3, 2),
}  # fmt: skip


@pytest.mark.parametrize("kind", AUTHORS, ids=lambda kind: kind.__name__)
def test_it_has_the_published_value_in_every_norm(kind):
    assert kind().norm_eps == AUTHORS[kind]
    model = jax.eval_shape(lambda: kind(norm_eps=0.25).create(jax.random.key(0), SHAPES[kind]))
    is_norm = lambda part: isinstance(part, LayerNorm | RMSNorm | GroupNorm)
    norms = [part for part in jax.tree.leaves(model, is_leaf=is_norm) if is_norm(part)]
    assert norms
    assert {norm.epsilon for norm in norms} == {0.25}


@pytest.mark.parametrize("kind", AUTHORS, ids=lambda kind: kind.__name__)
def test_older_runs_keep_one_value_for_all(kind):
    written = serialize.write(kind())
    fields = written["fields"]
    del fields["norm_eps"]
    fields.pop("scale_embeddings", None)
    found = serialize.read(written, kind)
    assert found.norm_eps == 1e-6
    assert getattr(found, "scale_embeddings", True)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm, GroupNorm])
def test_it_is_added_to_the_variance(norm):
    # The variance and the mean square are both 0.0009.
    x = np.array([[0.03, -0.03, 0.03, -0.03]], np.float32)
    np.testing.assert_allclose(norm(4, epsilon=0.0016)(jnp.asarray(x)), x / 0.05, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, -1e-6, 1e-40, 1.0, float("nan")])
@pytest.mark.parametrize("kind", [Language, CNN, SAGAN, ConvolutionalLanguage])
def test_invalid_values_name_the_field(kind, value):
    with pytest.raises(ValueError, match=r"^model\.norm_eps="):
        kind(norm_eps=value)


def test_models_without_embeddings_refuse_scale_embeddings():
    with pytest.raises(ValueError, match=r"^model\.scale_embeddings=False"):
        Detr(scale_embeddings=False)
    for model, source in ((ViT(scale_embeddings=False), IMAGE), (Classifier(scale_embeddings=False), Frames(3, 6))):
        with pytest.raises(ValueError, match=r"^model\.scale_embeddings=False"):
            model.create(jax.random.key(0), Classes(source, 3))
    assert MODELS["language"].scale_embeddings
