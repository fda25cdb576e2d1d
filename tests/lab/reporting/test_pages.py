"""Tests of the pages of several studies, some of which are broken."""

import pytest

from attnlab.cli.main import main
from tests.lab.synthetic import write_study


@pytest.fixture
def studies(tmp_path):
    for name in "abc":
        write_study(tmp_path / name, {"softmax": {}, "linear": {}}, steps=40, groups=(), examples=1)
    return tmp_path


def test_broken_studies_are_named_and_the_others_have_their_pages(studies, capsys):
    for name in "ab":
        (studies / name / "study.json").write_text("{")
    assert main(["report", str(studies)]) == 4
    out, err = capsys.readouterr()
    assert out == f"report: {studies}/c/report.html\n"
    lines = err.splitlines()
    assert len(lines) == 2
    for name, line in zip("ab", lines, strict=True):
        assert line.startswith(
            f"attnlab: error: cannot write the page of {studies / name}: {studies / name}/study.json: not JSON: "
        )


@pytest.mark.parametrize(("first", "code"), [("a", 3), ("b", 1)])
def test_the_exit_code_is_that_of_the_first(studies, monkeypatch, capsys, first, code):
    from attnlab.data.io.files import DataError
    from attnlab.lab.reporting import pages

    def failing(folder):
        if folder.name < first:
            return real(folder)
        raise DataError("gone") if folder.name == "a" else KeyError("x")

    real = pages.report
    monkeypatch.setattr(pages, "report", failing)
    assert main(["report", str(studies), "--debug"]) == code
    err = capsys.readouterr().err
    assert (
        f"attnlab: error: cannot write the page of {studies}/b: unexpected KeyError: 'x'; --debug shows the traceback\n"
        in err
    )
    assert 'raise DataError("gone") if' in err, "--debug shows the traceback"


def test_a_single_broken_study_is_refused_with_its_own_error(studies, capsys):
    (studies / "a" / "study.json").write_text("{")
    assert main(["report", str(studies / "a")]) == 4
    assert capsys.readouterr().err.startswith(f"attnlab: error: {studies}/a/study.json: not JSON: ")


def test_unreadable_files_of_a_page_are_reported(studies, capsys):
    (studies / "a" / "linear" / "metrics.jsonl").unlink()
    assert main(["report", str(studies / "a")]) == 0
    out, err = capsys.readouterr()
    assert out == f"report: {studies}/a/report.html\n"
    assert err.startswith("attnlab: a file could not be read: linear/metrics.jsonl: ")
    assert err.count("\n") == 1
