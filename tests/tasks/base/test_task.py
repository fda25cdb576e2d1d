import subprocess
import sys

import pytest

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
