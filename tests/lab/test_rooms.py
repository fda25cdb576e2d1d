"""What the laboratory lends on first use."""

import sys

import pytest

from attnlab import lab


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = lab.nothing


def test_what_a_room_lacks_is_named_and_not_the_room(tmp_path, monkeypatch):
    (tmp_path / "lacking.py").write_text("import attnlab_lacks_this\n")
    monkeypatch.setattr(lab, "__path__", [*lab.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="attnlab_lacks_this"):
        _ = lab.lacking
    assert "attnlab.lab.lacking" not in sys.modules
