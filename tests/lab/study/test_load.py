import re
import sys

import pytest

import attnlab
from attnlab.data.io.files import DataError
from attnlab.lab.study.load import experiments, load_code, load_study
from attnlab.lab.study.values import annotations

STUDY = 'study = Study(Experiment(Reverse(), Transformer()), over("train.steps", few=1, many=2), "which?")'
WORKS = f'''"""Which is better?

    attnlab run this.py
"""
from attnlab.lab.study import Experiment, Study
from attnlab.lab.study.variation import over
from attnlab.models import Transformer
from attnlab.tasks import Reverse
{STUDY}
'''


@pytest.fixture
def write(tmp_path):
    def write(text, name="dates.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_study_without_name_has_the_name_of_the_file(write):
    study = load_study(write(WORKS))
    assert (study.name, study.question, list(study.variants())) == ("dates", "which?", ["few", "many"])


def test_a_study_keeps_its_own_name(write):
    assert load_study(write(WORKS.replace('"which?"', 'name="mine"'))).name == "mine"


def test_a_file_with_a_single_experiment(write):
    study = load_study(write(WORKS.replace(STUDY, "experiment = Experiment(Reverse(), Transformer())"), "one.py"))
    assert (study.name, list(study.variants())) == ("one", ["base"])


def test_configs_defined_in_the_file(write):
    own = """
from __future__ import annotations
from dataclasses import dataclass
from attnlab.lab.study import Experiment, Study
@dataclass(frozen=True)
class Mine:
    width: int = 3
    def load(self): ...
    def create(self, key, shape): ...
study = Study(Experiment(Mine(), Mine()))
"""
    from attnlab.lab.study.overrides import apply

    assert apply(load_study(write(own)), ["model.width=4"]).base.model.width == 4


def test_loading_leaves_no_files(write, tmp_path):
    load_study(write(WORKS))
    assert [path.name for path in tmp_path.iterdir()] == ["dates.py"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("study = (", "dates.py:1: '(' was never closed"),
        ("x = 1\nif x\n", "dates.py:2: expected ':'"),
        ("x = 1", "dates.py: no `study` is defined; expected study = Study("),
        ("study = 3", "dates.py: `study` is of type int; expected study = Study("),
        ("x = 1\n\nraise ValueError('heads=3 must divide')", "dates.py:3: heads=3 must divide"),
        (
            "import nowhere_to_be_found",
            "dates.py:1: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("1 / 0", "dates.py:1: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)", "dates.py:2: SystemExit: 3"),
        (
            WORKS.replace("train.steps", "train.step"),
            "dates.py:9: train.step: Train has no field 'step'; nearest",
        ),
        (WORKS.replace("few=1", "few=-1"), "dates.py:9: train.steps=-1 must be at least 1"),
        (WORKS.replace("Transformer())", "Transformer(), trian=1)"), "dates.py:9: TypeError: "),
        (WORKS.replace("Reverse()", "None"), "dates.py:9: task=None must be a task, for example one of attnlab.TASKS"),
        (WORKS.replace("Transformer()", "Transformer"), "dates.py:9: model=<class "),
        (
            WORKS.replace('"which?"', 'published={"fiw": 0.5}'),
            "dates.py:9: published: no variant 'fiw'; nearest: 'few'",
        ),
        ("\0", "dates.py: source code string cannot contain null bytes"),
    ],
)
def test_errors_name_file_and_line(write, text, words):
    path = write(text)
    with pytest.raises(ValueError, match="^" + re.escape(f"{path.parent}/{words}")):
        load_study(path)


def test_a_file_that_fails_leaves_no_module(write):
    with pytest.raises(ValueError, match="broken"):
        load_study(write("raise ValueError('broken')", "broken.py"))
    assert "attnlab_experiment_broken" not in sys.modules


def test_missing_data_are_not_an_error_of_the_file(write):
    text = "from attnlab.data.io.files import DataError\nraise DataError('gone')"
    with pytest.raises(DataError, match=r"^gone$"):
        load_study(write(text))


def test_a_missing_file_lists_existing_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^x.py: no such experiment file; ./experiments contains none$"):
        load_study("x.py")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "dates.py").write_text(WORKS)
    with pytest.raises(ValueError, match=r"known: experiments/dates.py$"):
        load_study("x.py")
    with pytest.raises(ValueError, match="no such experiment file"):
        load_study("experiments")


def test_experiments_are_listed_without_running_them(tmp_path):
    (tmp_path / "dates.py").write_text(WORKS)
    (tmp_path / "bad.py").write_text("(")
    (tmp_path / "danger.py").write_text("'''Never run.'''\nraise SystemExit")
    (tmp_path / "_private.py").write_text("")
    listed = {path.rpartition("/")[2]: line for path, line in experiments(tmp_path).items()}
    assert listed.pop("bad.py").startswith("(cannot be read")
    assert listed == {"danger.py": "Never run.", "dates.py": "Which is better?"}


def test_a_code_file_is_run_for_what_it_registers(write, monkeypatch):
    monkeypatch.setattr(attnlab, "MECHANISMS", dict(attnlab.MECHANISMS))
    load_code(write("import attnlab\nattnlab.MECHANISMS['mine'] = attnlab.MECHANISMS['linear']"))
    assert attnlab.MECHANISMS["mine"] is attnlab.MECHANISMS["linear"]
    load_code(write(WORKS, "an_experiment.py"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n1 / 0", "own.py:2: ZeroDivisionError: division by zero"),
        ("x = (", "own.py:1: '(' was never closed"),
        (None, "own.py: no such Python file"),
    ],
)
def test_a_file_of_code_that_fails_is_named_with_its_line(write, tmp_path, text, words):
    path = tmp_path / "own.py" if text is None else write(text, "own.py")
    with pytest.raises(ValueError, match="^" + re.escape(f"{tmp_path}/{words}") + "$"):
        load_code(path)


def test_two_files_with_one_name_are_separate_modules(write, tmp_path):
    own = "from dataclasses import dataclass\nKind = int\n@dataclass(frozen=True)\nclass Mine:\n    kind: 'Kind' = 0\n"
    (tmp_path / "a").mkdir()
    first, again = load_code(write(own, "a/mine.py")), load_code(write(own, "a/mine.py"))
    assert first.__name__ == again.__name__
    load_code(write("x = 1", "mine.py"))
    assert annotations(again.Mine) == {"kind": int}
