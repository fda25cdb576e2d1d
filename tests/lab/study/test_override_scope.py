from dataclasses import replace

from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from attnlab.models.detr import Detr
from tests.small import EXPERIMENT

VARIED = Study(EXPERIMENT, over("model.mechanism", softmax=Softmax(), linear=Linear()))


def notes(study, *given):
    """Returns the notes on attentions, without those on selected variants."""
    return [note for note in apply(study, given).notes if " selects " not in note]


def test_unaffected_attentions_are_reported():
    own = replace(VARIED, base=change(EXPERIMENT, **{"model.cross": Softmax(), "model.encoder": Softmax()}))
    told = "model.mechanism=linear does not change: model.encoder and model.cross of linear"
    assert notes(own, "model.mechanism=linear") == [told]
    assert notes(own, "model.mechanism=linear", "model.encoder=linear") == [told.replace("model.encoder and ", "")]
    assert notes(own, "model.mechanism=linear", "model.encoder=none", "model.cross=none") == []
    assert notes(own, "train.steps=3") == []
    assert notes(VARIED, "model.mechanism=linear") == []


def test_each_variant_is_reported_by_its_differences():
    base = change(EXPERIMENT, model=Detr(queries=4, query_attention=Softmax()))
    study = Study(base, over("model.cross", shared=None, linear=Linear(), softmax=Softmax()))
    (told,) = notes(study, "model.mechanism=linear")
    parts = ["model.query_attention of shared, linear, softmax", "model.cross of linear, softmax"]
    assert told == f"model.mechanism=linear does not change: {'; '.join(parts)}"


def test_varied_fields_without_effect_are_reported():
    given = ["model.encoder=softmax", "model.decoder=softmax", "model.cross=linear"]
    assert notes(VARIED, *given[:2]) == []
    (told,) = notes(VARIED, *given)
    assert told == f"with {' '.join(given)}, the varied model.mechanism has no effect in softmax, linear"
    # If the study does not vary the field, nothing is reported.
    assert notes(Study(EXPERIMENT), *given) == []
