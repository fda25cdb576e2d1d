"""Tests of the parts of the page in a notebook."""

import pytest

from attnlab.lab.launch import Results
from attnlab.lab.reporting import notebook
from tests.lab.synthetic import write_study

# The maps are unpacked asynchronously. Then they are drawn, and the frame grows.
READY = """new Promise(done => {
  const waits = () => frames[3].document.querySelector(".lens:not(.live)");
  const wait = () => setTimeout(waits() ? wait : done, 100);
  wait();
})"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = write_study(tmp_path_factory.mktemp("studies") / "dates", steps=500)
    return Results(folder, folder / "report.html", 0)


def test_in_a_terminal_they_are_text(results):
    assert "exact match" in str(results.table())
    assert "softmax" in str(results.table())
    said = str(results.verdicts()).split("\n")
    assert said[0] == "linear is worse than softmax."
    assert any(line.startswith("linear: exact match") for line in said)
    assert "<" not in str(results.verdicts())
    assert str(results.curves()) == "learning curves: a notebook and the study's page, report.html, draw them"


def test_without_data_a_note_is_shown(tmp_path):
    folder = write_study(tmp_path / "none", {"softmax": {"finished": False}})
    assert str(notebook.maps(folder)).startswith("no attention maps")
    assert "no attention maps" in notebook.maps(folder).page
    assert str(notebook.curves(folder)).startswith("no learning curves")


def test_output_is_confined_to_its_frame(tmp_path):
    folder = write_study(tmp_path / "odd", {'"><script>alert(1)</script>': {"mean": 0.9}, "b": {"mean": 0.8}})
    shown = notebook.table(folder)._repr_html_()
    assert shown.startswith("<iframe ")
    assert shown.count("<") == shown.count(">") == 2


def test_a_notebook_shows_pages_at_full_height_with_working_sliders(results, browser, tmp_path):
    page = tmp_path / "notebook.html"
    parts = [results.table(), results.verdicts(), results.curves(), results.maps()]
    page.write_text("<!doctype html><style>table { display: none }</style>" + "".join(p._repr_html_() for p in parts))
    browser.open(page)
    browser.run(READY)
    frames = "[...document.querySelectorAll('iframe')].map(frame => frame"
    heights = browser.run(f"{frames}.clientHeight)")
    assert heights == browser.run(f"{frames}.contentDocument.documentElement.scrollHeight)")
    assert min(heights) > 100
    # The style of the notebook does not affect the frames.
    assert browser.run(f"{frames}.contentDocument.querySelector('table')).filter(Boolean).length") >= 1
    assert browser.run("getComputedStyle(frames[0].document.querySelector('table')).display") == "table"
    assert browser.run("frames[3].document.querySelectorAll('input[type=range]').length") >= 3
    assert browser.said == []
