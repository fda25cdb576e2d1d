import pytest
from PIL import Image

from attnlab.analysis.roofline import Machine
from attnlab.bench.plot import draw
from attnlab.storage.json_file import FolderError
from tests.bench.stand_ins import measured

MACHINE = Machine("cpu", 4e11, 1e10)


def test_it_plots_several_mechanisms(tmp_path):
    many = [
        cell
        for n in range(12)
        for mask in ("full", "causal")
        for cell in measured(f"mechanism-{n}", mask, power=1 + n / 12, peers=("torch",) if n == 0 else ())
    ]
    draw(many, MACHINE, tmp_path / "new" / "bench.png")
    with Image.open(tmp_path / "new" / "bench.png") as picture:
        assert picture.size[0] > 1000
        assert len(picture.convert("P").getcolors()) > 10


def test_its_axes_have_plain_numbers(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr("attnlab.bench.plot.png", lambda figure, _: figures.append(figure) or b"")
    draw(measured(), MACHINE, tmp_path / "bench.png")
    figures[0].canvas.draw()
    axes = [axis for each in figures[0].axes for axis in (each.xaxis, each.yaxis)]
    words = [label.get_text() for axis in axes for label in axis.get_ticklabels() if label.get_text()]
    assert len(words) > 10
    assert all(float(word.replace(",", "")) > 0 for word in words)


def test_an_unwritable_path_is_named(tmp_path):
    (tmp_path / "bench.png").mkdir()
    with pytest.raises(FolderError, match=r"bench\.png"):
        draw(measured(), MACHINE, tmp_path / "bench.png")
