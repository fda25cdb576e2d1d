import matplotlib
import numpy as np
import pytest

from attnlab.lab.runs.pictures import PNG, Picture, pictures
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.trained.pictures import FIRST, answer_pictures
from attnlab.plotting import grid
from attnlab.tasks.base.task import TaskData


class Drawn:
    """Data of numbers whose answers are drawn as pictures."""

    def eval_batches(self, part, limit=None):
        assert part == "test"
        return [{"x": np.arange(20.0)}]

    def pictures(self, batch, answer):
        assert len(batch["x"]) == FIRST
        return {"doubled": PNG + bytes(answer["y"].astype(np.uint8))}


def doubled(count):
    return {"y": 2 * np.arange(20.0)}


def test_pictures_are_stored_and_read_again(tmp_path):
    run = RunFolder(tmp_path)
    run.write("experiment", {"study": "", "question": "", "variant": "", "quick": False, "experiment": {}})
    assert pictures(run) == ()
    run.write("pictures", answer_pictures(Drawn(), doubled) or {})
    assert pictures(run) == (Picture("doubled", PNG + bytes(range(0, 32, 2))),)


def test_user_matplotlib_settings_do_not_change_pictures():
    """Checks this with a setting that needs LaTeX, which may not be installed, and with other colours."""

    class Squares(Drawn):
        def pictures(self, batch, answer):
            return {"square": grid([np.eye(3)], ["one"])}

    plain = answer_pictures(Squares(), doubled)
    with matplotlib.rc_context({"text.usetex": True, "font.size": 30, "figure.facecolor": "red"}):
        assert answer_pictures(Squares(), doubled) == plain


def test_task_without_pictures_stores_none():
    silent = type("Silent", (Drawn,), {"pictures": TaskData.pictures})()
    assert answer_pictures(silent, doubled) is None


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"caption": "x", "png": "%%%"}, "picture 0 is not valid base64"),
        ({"caption": "x", "png": "AAAA"}, "picture 0 must have a caption and a PNG file"),
        ({"png": "iVBORw0KGgo="}, "picture 0 must have a caption and a PNG file"),
        (7, "picture 0 must have a caption and a PNG file"),
    ],
    ids=["letters", "other-bytes", "no-caption", "number"],
)
def test_invalid_picture_is_refused(tmp_path, entry, what):
    run = RunFolder(tmp_path)
    run.write("experiment", {"study": "", "question": "", "variant": "", "quick": False, "experiment": {}})
    run.write("pictures", {"pictures": [entry]})
    with pytest.raises(FolderError, match=rf"pictures.json: {what}"):
        pictures(run)
