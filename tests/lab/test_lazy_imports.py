"""Names that `attnlab.lab` imports on first use."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from attnlab import lab
from attnlab.cli.verbs import VERBS


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = lab.nothing


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "list"])
def test_every_verb_is_callable(verb):
    """Checks that no module hides a verb, also after the command line has imported its modules."""
    assert callable(getattr(lab, verb))
    assert not isinstance(getattr(lab, verb), ModuleType)
    assert not (Path(lab.__path__[0]) / f"{verb}.py").exists()
    assert not (Path(lab.__path__[0]) / verb).exists()


SMALL = """
from attnlab.lab.study import Study, change
from tests.small import EXPERIMENT, TINY

study = Study(change(EXPERIMENT, **TINY), name="small")
"""


def test_show_equals_the_output_of_the_command_line(tmp_path, capsys):
    from attnlab.cli.main import main

    (tmp_path / "small.py").write_text(SMALL)
    assert main(["show", str(tmp_path / "small.py")]) == 0
    assert repr(lab.show(lab.load_study(tmp_path / "small.py"))) + "\n" == capsys.readouterr().out


def test_a_missing_import_names_the_missing_module(tmp_path, monkeypatch):
    (tmp_path / "lacking.py").write_text("import attnlab_lacks_this\n")
    monkeypatch.setattr(lab, "__path__", [*lab.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="attnlab_lacks_this"):
        _ = lab.lacking
    assert "attnlab.lab.lacking" not in sys.modules
