import pytest

from attnlab.lab.plan import ahead, plans
from attnlab.lab.study import Study, Variation, change
from attnlab.models import Bert, Retriever
from attnlab.tasks.associations import Associations
from attnlab.tasks.sentences import Questions
from tests.small import EXPERIMENT

BASE = change(EXPERIMENT, task=Associations(keys=4, examined=20), model=Retriever(width=8), **{"train.steps": 24})
STUDY = Study(BASE, Variation({"a": {}, "b": {"train.steps": 16}, "c": {"train.steps": 9}}), name="planned")


def test_what_lies_ahead_is_what_has_no_result_by_now(tmp_path):
    first, second, third = found = plans(STUDY, STUDY.variants(), tmp_path, {})
    assert [ahead(found, each) for each in found] == [16 + 9, 9, 0]
    # Of two processes that share it, one has this one, and each a half of the rest.
    assert ahead(found, first, workers=2) == 12
    second.folder.path.mkdir()
    second.folder.file("result").write_text("{}")
    assert [ahead(found, each) for each in (first, third)] == [9, 0]


def test_a_model_of_the_steps_that_prepare_is_not_averaged(tmp_path):
    task = Questions(masked=8, train_examples=30, valid_examples=6, test_examples=6, buckets=1)
    fields = {"train.steps": 20, "train.save_every": 4, "train.evaluate_every": 4}
    base = change(EXPERIMENT, task=task, model=Bert(width=8, heads=2, layers=1, feedforward=8), **fields)
    # Checkpoints are those of steps 4, 8, 12, 16 and 20.
    for average, allowed in ((0, True), (3, True), (4, False), (5, False)):
        study = Study(change(base, **{"train.average": average}), name="averaged")
        if allowed:
            assert plans(study, study.variants(), tmp_path, {})
            continue
        with pytest.raises(
            ValueError, match=rf"train\.average={average} begins .* step {4 * (6 - average)}, and the 8"
        ):
            plans(study, study.variants(), tmp_path, {})
