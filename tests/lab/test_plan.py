from attnlab.lab.plan import ahead, plans
from attnlab.lab.study import Study, Variation, change
from attnlab.models import Retriever
from attnlab.tasks.associations import Associations
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
