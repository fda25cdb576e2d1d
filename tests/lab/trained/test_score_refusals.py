"""Tests of files and options that `score` refuses."""

import numpy as np
import pytest

from attnlab.cli.main import main
from attnlab.data.io.files import DataError
from attnlab.lab.runs.answer_table import read
from attnlab.lab.runs.run_folder import FolderError
from attnlab.lab.trained.score import score
from attnlab.tasks import Recall
from tests.data.audio.test_recordings import put, tone
from tests.data.images.test_idx_files import idx, written
from tests.lab.trained.own_data import graph

BAD = {
    "empty": ("pairs", "x.tsv", "", r"x\.tsv contains no texts"),
    "another kind": ("pairs", "x.tsv", b"PK\x03\x04\xff\xfe", r"x\.tsv is not UTF-8: byte 4"),
    "too long": ("pairs", "x.tsv", "ab\tba\n" + "a" * 99 + "\tb\n", r"x\.tsv, line 2: the source has 99 symbols"),
    "a half": ("pairs", "x.tsv", "ab\tba\nab\t\n", r"x\.tsv, line 2: the target is empty"),
    "no phones": ("pronunciations", "x", "ab A B\nabc\n", r"x, line 2: 'abc' has no phones"),
    "a class never seen": ("sentences", "x", "up rises\nleft x\n", r"x, line 2: class 'left' is not one of the 2"),
    "a class before a tab": ("sentences", "x", "left\tx\n", r"x, line 1: class 'left' is not one of the 2"),
    "a long sentence": ("sentences", "x", "up x\nup" + " x" * 99 + "\n", r"x, line 2: the sentence has 99 symbols"),
    "no sentences": ("sentences", "x", "\n", r"x contains no sentences"),
    "no text": ("text", "x", " \n", r"x contains no text"),
    "a strange text": ("text", "x", "жжж", r"x: 3 of 3 symbols do not occur in training"),
    "no graph": ("nodes", "x.npz", "ab", r"x\.npz"),
    "no picture": ("images", "x.png", "ab", r"x\.png"),
    "a table's class": ("images", "x.tsv", "x.tsv\t9\n", r"x\.tsv, line 1: class '9' is not one of the 3"),
    "a table's path": ("images", "x.tsv", "\ny.png\t1\n", r"x\.tsv, line 2: the picture 'y\.png' does not exist"),
    "no folder": ("sounds", "x", "ab", r"x is not a folder"),
}


@pytest.mark.parametrize("name", BAD)
def test_unscorable_lines_are_named_and_exit_with_3(name, trained, tmp_path, capsys):
    kind, file, content, said = BAD[name]
    folder, good = trained(kind)
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=said):
        score(folder, [str(tmp_path / file)])
    # If one of several files is invalid, nothing is answered.
    out = tmp_path / "out.tsv"
    assert main(["score", str(folder), good, str(tmp_path / file), "--out", str(out)]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("kind", "content", "half"),
    [
        ("pairs", "ab\tba\nab\t\n", "1 line (2)"),
        ("pronunciations", "ab A B\nabc\n", "1 line (2)"),
        ("sentences", "up\nup rises\n", "1 line (1)"),
    ],
)
def test_lines_with_one_empty_side_are_skipped_with_a_note(kind, content, half, trained, tmp_path, capsys):
    folder, _ = trained(kind)
    (tmp_path / "x").write_text(content)
    arguments = ["score", str(folder), str(tmp_path / "x"), "--empty", "skip", "--out", "-"]
    assert main(arguments) == 0
    found = capsys.readouterr()
    assert f"attnlab: {tmp_path / 'x'}: {half} with one empty side is skipped\n" in found.err
    assert found.out.count("\n") == 2  # the head and the one example
    assert main([*arguments[:-3], "cut", "--out", "-"]) == 2
    assert "argument --empty: invalid choice: 'cut' (choose from " in capsys.readouterr().err


def test_a_single_file_is_refused(trained, tmp_path):
    folder, _ = trained("pairs")
    for file in (tmp_path / "x.tsv", str(tmp_path / "x.tsv")):
        with pytest.raises(TypeError, match=r"^files must be a list of files, got '.*x\.tsv'; pass \['.*x\.tsv'\]$"):
            score(folder, file)


def test_a_file_without_sides_has_no_empty_ones(trained, capsys):
    folder, file = trained("text")
    assert main(["score", str(folder), file, "--empty", "skip", "--out", "-"]) == 2
    assert capsys.readouterr().err.endswith(
        "--empty skip has no effect: the files of Text have no lines with two sides\n"
    )


def test_wrong_sizes_are_named(trained, tmp_path):
    written(tmp_path, "test", count=3)
    idx(tmp_path / "test-images-idx3-ubyte", np.zeros((3, 6, 5), np.uint8))
    with pytest.raises(DataError, match=r"contains images of 6 × 5 × 1, but the model expects 4 × 5 × 1"):
        score(trained("images")[0], [str(tmp_path)])
    with pytest.raises(DataError, match=r"g\.npz: the nodes have 15 features, but the model expects 12"):
        score(trained("nodes")[0], [graph(tmp_path / "g.npz", features=15)])
    named = graph(tmp_path / "h.npz", class_names=np.array(["0", "1", "other"]))
    with pytest.raises(
        DataError,
        match=r"h\.npz: the class 'other' of node '.*' does not occur in training; the training classes are 0, 1, 2",
    ):
        score(trained("nodes")[0], [named])


def test_recordings_of_another_length_are_named(trained, tmp_path):
    put(tmp_path / "s" / "low" / "a.wav", tone(300, 8000, 3.0), rate=8000)
    with pytest.raises(DataError, match=r"s: low/a\.wav lasts 2\.9\d s, but the model reads at most 0\.\d+ s"):
        score(trained("sounds")[0], [str(tmp_path / "s")])


def test_generated_task_reads_no_file(tmp_path):
    task = Recall(vocabulary=6, pairs=2, valid_examples=4, test_examples=6)
    with pytest.raises(
        NotImplementedError, match="task=Recall generates its own examples and does not read other files"
    ):
        task.with_test(None, "x")


def test_no_file_is_replaced_and_answers_may_go_to_standard_output(trained, tmp_path, capsys):
    folder, file = trained("text")
    assert main(["score", str(folder), file]) == 0
    default = folder / "answers-test.tsv"
    assert read(default) == read(folder / "answers.tsv")
    before = default.read_bytes()
    capsys.readouterr()
    assert main(["score", str(folder), file]) == 2
    assert "answers-test.tsv already exists; set another file with --out FILE" in capsys.readouterr().err
    assert main(["score", str(folder), file, "--out", str(default)]) == 2
    assert main(["score", str(folder), file, "--out", str(tmp_path)]) == 2
    assert main(["score", str(folder), file, "--json", str(tmp_path / "x.txt"), "--out", "-"]) == 2
    result = (folder / "result.json").read_bytes()
    capsys.readouterr()
    assert main(["score", str(folder), file, "--json", str(folder / "result.json"), "--out", "-"]) == 2
    assert "result.json already exists; set another file with --json FILE" in capsys.readouterr().err
    same = str(tmp_path / "same.json")
    assert main(["score", str(folder), file, "--json", same, "--out", same]) == 2
    assert "--out and --json are the same file" in capsys.readouterr().err
    assert (folder / "result.json").read_bytes() == result
    capsys.readouterr()
    assert main(["score", str(folder), file, "--out", "-"]) == 0
    out, said = capsys.readouterr()
    assert out.encode() == before == default.read_bytes()
    assert "nats per character" in said


def test_a_read_only_run_suggests_another_output(trained, monkeypatch, capsys):
    folder, file = trained("text")
    (folder / "answers-test.tsv").unlink(missing_ok=True)

    def refuse(option, path):
        raise FolderError(f"{path}: Permission denied")

    monkeypatch.setattr("attnlab.cli.score.check_place", refuse)
    assert main(["score", str(folder), file]) == 4
    assert "Permission denied; set another file with --out FILE" in capsys.readouterr().err
    assert main(["score", str(folder), file, "--out", "-"]) == 0
