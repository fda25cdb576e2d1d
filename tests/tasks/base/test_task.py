import subprocess
import sys
from dataclasses import replace

import pytest

from attnlab.console.metric import Metric
from attnlab.tasks.base.metrics import ACCURACY, WORD_ERROR_RATE
from attnlab.tasks.base.task import Task, TaskData


@pytest.mark.parametrize("kind", [Task, TaskData])
def test_abstract_classes_cannot_be_created(kind):
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_importing_tasks_and_data_imports_neither_jax_nor_babel():
    heavy = ("jax", "flax", "optax", "babel")
    rooms = "attnlab.tasks, attnlab.data.io.sources, attnlab.data.synthetic.dates, attnlab.data.batches"
    code = f"import sys, {rooms}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_parts_share_the_declaration_of_their_metric():
    class Data(TaskData):
        metric, more_metrics = ACCURACY, (WORD_ERROR_RATE, Metric("accuracy.at.5", "points"))

    one = Data.__new__(type("Whole", (Data,), dict.fromkeys(TaskData.__abstractmethods__)))
    assert one.declared("accuracy") == ACCURACY
    assert one.declared("accuracy.0-10 words") == replace(ACCURACY, name="accuracy.0-10 words")
    assert one.declared("accuracy.at.5.de").unit == "points"
    assert one.declared("word_error_rate.de") == replace(WORD_ERROR_RATE, name="word_error_rate.de")
    for name in ("word_accuracy", "accuracy_of", "digit_error_rate", ""):
        assert one.declared(name) == Metric(name)
