from dataclasses import fields, is_dataclass

import pytest

from attnlab.data.text.units import TokenizerSpec
from attnlab.tasks import TASKS, Task


def test_the_registry_of_tasks():
    assert list(TASKS) == [
        "dates", "reverse", "copy", "cmudict", "sigmorphon", "scan", "multi30k", "parallel", "shakespeare", "text",
        "associations", "recall", "induction", "parity", "modular-sum", "s3", "s5", "group-words", "dyck",
        "selective-copying", "needle", "listops", "pathfinder", "documents", "document-pairs", "trec", "sst2",
        "questions", "sentences", "fashion-mnist", "images", "figures", "generation", "convolution", "cells", "boxes",
        "discs", "cora", "nodes", "spoken", "sounds", "tones",
    ]  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_a_frozen_dataclass_of_plain_values(name):
    task = TASKS[name]
    assert isinstance(task, Task)
    assert is_dataclass(task)
    assert hash(task) == hash(type(task)())
    assert task == type(task)()
    assert type(task).__doc__
    for field in fields(task):
        assert isinstance(getattr(task, field.name), int | float | str | tuple | TokenizerSpec | Task | None)
    assert set(task.training_only_fields) <= {field.name for field in fields(task)}
