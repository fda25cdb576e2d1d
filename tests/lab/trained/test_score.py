"""Tests of `score` on other files. For every kind of task, its scores on the test file of a run equal its result."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from attnlab.cli.main import main
from attnlab.cli.score import title
from attnlab.data.io.files import DataError
from attnlab.lab import run
from attnlab.lab.runs.answer_table import read
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.study.study import Experiment, Study
from attnlab.lab.trained.score import score, table
from attnlab.models import Classifier, Detr, Gat, Language, Transformer
from attnlab.models.mlp import MLP
from attnlab.tasks import Boxes, CMUdict, Images, Nodes, Recall, Sentences, Sounds, Text
from attnlab.tasks.text.translation import Parallel
from attnlab.training.config import Train
from tests.data.audio.test_recordings import put, tone
from tests.data.images.test_idx_files import idx, written
from tests.data.images.test_picture_parts import classes

PARTS = ("train", "valid", "test")
SMALL = {"width": 8, "heads": 2, "layers": 1}
SIZES = {"train": 40, "valid": 10, "test": 12}


def named(folder, ending=""):
    return {part: str(folder / f"{part}{ending}") for part in PARTS}


def lines(folder, ending, line):
    """Writes a file for each part, with lines that a function draws, and returns the paths by part."""
    draw = random.Random(0)
    for part, path in named(folder, ending).items():
        Path(path).write_text("".join(line(draw) + "\n" for _ in range(SIZES[part])))
    return named(folder, ending)


def word(draw):
    return "".join(draw.choice("abc") for _ in range(draw.randint(2, 5)))


def pairs(folder):
    def line(draw):
        one = word(draw)
        return f"{one}\t{one[::-1]}"

    files = lines(folder, ".tsv", line)
    # The last source gets a second target.
    with Path(files["test"]).open("a") as file:
        file.write(f"{Path(files['test']).read_text().split()[-2]}\tb\n")
    return Parallel(**files, metric="exact_match"), Transformer(**SMALL), files["test"]


def pronunciations(folder):
    def line(draw):
        one = word(draw)
        return f"{one} {' '.join(one.upper())}"

    files = lines(folder, ".dict", line)
    return CMUdict(**files), Transformer(**SMALL), files["test"]


def sentences(folder):
    def line(draw):
        kind = draw.choice(["up", "down"])
        return f"{kind} {' '.join(draw.choice(['rises', 'x'] if kind == 'up' else ['falls', 'x']) for _ in range(4))}"

    files = lines(folder, ".txt", line)
    return Sentences(**files), Classifier(**SMALL), files["test"]


def text(folder):
    files = lines(folder, ".txt", lambda draw: " ".join(word(draw) for _ in range(14)))
    return Text(**files, length=16), Language(**SMALL), files["test"]


def images(folder):
    for seed, part in enumerate(PARTS):
        written(folder, part, count=SIZES[part], seed=seed)
    return Images(train=str(folder)), MLP(width=8), str(folder)


def photographs(folder):
    for seed, part in enumerate(PARTS):
        classes(folder / part, count=SIZES[part], kinds=("dry", "wet"), mode="RGB", seed=seed)
    return Images(train=str(folder)), MLP(width=8), str(folder)


def sounds(folder):
    for n, part in enumerate(PARTS):
        for take in range(3):
            put(folder / part / "low" / f"{take}.wav", tone(300 + 20 * take, 8000, 0.1 + 0.01 * n), rate=8000)
            put(folder / part / f"high_{take}.wav", tone(2000 + 50 * take, 8000, 0.1 + 0.01 * n), rate=8000)
    return Sounds(**named(folder), bands=8), Classifier(**SMALL), str(folder / "test")


def scenes(folder):
    from PIL import Image

    draw = np.random.default_rng(0)
    for part in PARTS:
        (folder / part).mkdir(parents=True)
        rows = ["image\tlabel\txmin\tymin\txmax\tymax"]
        for n in range(4):
            Image.fromarray(draw.integers(256, size=(16, 16, 3), dtype=np.uint8)).save(folder / part / f"{n}.png")
            rows.append(f"{n}\t{'cup' if n % 2 else 'pen'}\t2\t3\t{8 + n}\t{9 + n}")
        (folder / part / "boxes.tsv").write_text("\n".join(rows) + "\n")
    return Boxes(**named(folder), rows=16, columns=16), Detr(**SMALL), str(folder / "test")


def graph(path, nodes=60, features=12, labels=None, seed=0, **others):
    """Writes a graph file and returns its path. Each node is linked to the next one and has features of its class."""
    draw = np.random.default_rng(seed)
    kinds = draw.integers(3, size=nodes) if labels is None else labels
    columns = (np.maximum(kinds, 0) * (features // 3) + draw.integers(features // 3, size=nodes)).astype(np.int32)
    arrays = {
        "adj_data": np.ones(nodes - 1), "adj_indices": np.arange(1, nodes), "adj_shape": np.array([nodes, nodes]),
        "adj_indptr": np.minimum(np.arange(nodes + 1), nodes - 1),
        "attr_data": np.ones(nodes), "attr_indices": columns, "attr_shape": np.array([nodes, features]),
        "attr_indptr": np.arange(nodes + 1), "labels": kinds,
    }  # fmt: skip
    np.savez(path, **arrays | others)
    return str(path)


def nodes(folder):
    file = graph(folder / "graph.npz")
    return Nodes(graph=file, each=4, valid_examples=10, test_examples=12), Gat(width=8, heads=2), file


KINDS = {
    "pairs": pairs,
    "pronunciations": pronunciations,
    "sentences": sentences,
    "text": text,
    "images": images,
    "photographs": photographs,
    "sounds": sounds,
    "boxes": scenes,
    "nodes": nodes,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Returns a function for the run of a kind of task and its test file. Each run is trained once for all tests."""
    made = {}

    def of(kind):
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            task, model, file = KINDS[kind](folder)
            train = Train(steps=8, batch_size=4, warmup=2, seeds=2, evaluate_every=8, save_every=8)
            rates = {"learning_rate": (1e-4, 3e-3)} if kind in ("pairs", "sentences") else {}
            study = Study(Experiment(task, model, Train(**vars(train) | rates)), name=kind)
            run(study, folder / "runs")
            made[kind] = folder / "runs" / kind / "base", file
        return made[kind]

    return of


@pytest.mark.parametrize("kind", KINDS)
def test_scoring_the_own_test_file_reproduces_result_and_answers(kind, trained, tmp_path):
    folder, file = trained(kind)
    (found,) = score(folder, [file])
    result = RunFolder(folder).read("result") or {}
    assert found.metrics == result["metrics"]
    assert list(found.seeds) == result["seeds"]
    assert (tmp_path / "t.tsv").write_text(table([found]))
    assert read(tmp_path / "t.tsv") == read(folder / "answers.tsv")
    assert found.examples > 0


@pytest.mark.parametrize("kind", ["pairs", "pronunciations", "sentences", "text", "photographs", "sounds", "boxes"])
def test_examples_of_the_training_part_are_reported(kind, tmp_path):
    task, _, file = KINDS[kind](tmp_path)
    train = str(Path(file).with_name(Path(file).name.replace("test", "train"))) if kind != "photographs" else None
    train = train or str(tmp_path / "train")
    (line,) = [note for note in task.with_test(task.load(), train).notes if "also" in note]
    assert re.fullmatch(rf"{re.escape(train)}: (\d+) of \1 [\w ]+ are also in train", line)


@pytest.mark.parametrize("kind", ["pairs", "sentences", "text"])
def test_the_command_prints_what_the_table_does_and_keeps_the_answers(kind, trained, tmp_path, capsys):
    folder, file = trained(kind)
    out, record = tmp_path / "out.tsv", tmp_path / "out.json"
    assert main(["score", str(folder), file, "--out", str(out), "--json", str(record)]) == 0
    said = capsys.readouterr().out
    result = RunFolder(folder).read("result") or {}
    assert json.loads(record.read_text())[0]["metrics"] == result["metrics"]
    assert f"answers: {out}" in said
    assert result["metric"].replace("_", " ") in said
    assert read(out) == read(folder / "answers.tsv")


@pytest.mark.parametrize(
    ("kind", "content"),
    [("pairs", "abc\nba\n"), ("pronunciations", "abc\nba\n"), ("sentences", "rises x falls\nx x\n")],
)
def test_inputs_without_answers_have_answers_but_no_metrics(kind, content, trained, tmp_path):
    folder, _ = trained(kind)
    (tmp_path / "inputs").write_text(content)
    (found,) = score(folder, [str(tmp_path / "inputs")])
    assert found.metrics == {}
    assert [row.input for row in found.rows[0]] == content.splitlines()
    assert all(row.expected is None and row.answer is not None for row in found.rows[0])
    if kind == "sentences":
        assert any("without classes" in note for note in found.notes)


def test_pictures_are_answered_by_name_in_folders_of_classes_in_a_table_and_alone(trained, tmp_path, capsys):
    from PIL import Image

    folder, _ = trained("images")
    draw = np.random.default_rng(0)
    for name in ("1/a.png", "2/b.png", "c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(draw.integers(256, size=(4, 5), dtype=np.uint8)).save(tmp_path / name)
    (found,) = score(folder, [str(tmp_path)])
    assert {row.input: row.expected for row in found.rows[0]} == {"1/a.png": "1", "2/b.png": "2", "c.png": None}
    assert list(found.metrics) == ["accuracy"]
    assert (found.examples, found.scored) == (3, 2)
    assert title(found).startswith(f"{tmp_path}: 3 examples, 2 of them with an expected answer, ")
    (tmp_path / "table.tsv").write_text("2/b.png\t2\n1/a.png\t0\n")
    listed, alone = score(folder, [str(tmp_path / "table.tsv"), str(tmp_path / "c.png")])
    assert [(row.input, row.expected) for row in listed.rows[0]] == [("2/b.png", "2"), ("1/a.png", "0")]
    assert [row.expected for row in alone.rows[0]] == [None]
    assert alone.metrics == {}
    assert main(["score", str(folder), str(tmp_path / "c.png"), "--out", "-"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "c.png: 1 example, " in line]
    assert line.startswith(f"{tmp_path}/c.png: 1 example, ")
    assert line.endswith("; no metrics, because the file has no expected answers")
    assert title(listed) == f"{tmp_path}/table.tsv: 2 examples, 2 seeds"
    before = {row.input: row for row in found.rows[0]}
    assert [row.answer for row in listed.rows[0]] == [before[name].answer for name in ("2/b.png", "1/a.png")]
    heading, *rows = table([listed, alone]).splitlines()
    assert heading.startswith("file\tinput\texpected\tanswer.0\tprobability.0")
    assert [row.split("\t")[0] for row in rows] == [str(tmp_path / "table.tsv")] * 2 + [str(tmp_path / "c.png")]


def test_a_run_on_pictures_is_scored_on_its_folder_on_a_table_and_on_one_picture(trained, tmp_path):
    folder, file = trained("photographs")
    (own,) = score(folder, [file])
    kept = json.loads((folder / "result.json").read_text())["metrics"]
    assert own.metrics["accuracy"]["values"] == kept["accuracy"]["values"]
    (tmp_path / "some.tsv").write_text(f"{file}/test/wet/1.png\twet\n{file}/test/dry/0.png\twet\n")
    listed, alone = score(folder, [str(tmp_path / "some.tsv"), f"{file}/test/wet/1.png"])
    before = {row.input: row for row in own.rows[0]}
    assert [(row.expected, row.answer) for row in listed.rows[0]] == [
        ("wet", before["wet/1.png"].answer),
        ("wet", before["dry/0.png"].answer),
    ]
    assert {row.answer for row in own.rows[0]} <= {"dry", "wet"}
    assert [row.expected for row in alone.rows[0]] == [None]


def test_images_without_labels_next_to_them_are_answered(trained, tmp_path):
    folder, _ = trained("images")
    pixels = np.zeros((3, 4, 5), np.uint8)
    idx(tmp_path / "new-images", pixels)
    (found,) = score(folder, [str(tmp_path / "new-images")])
    assert found.metrics == {}
    assert [row.input for row in found.rows[0]] == ["test:1", "test:2", "test:3"]


def test_another_graph_of_other_nodes_is_answered_with_the_labels_that_it_has(trained, tmp_path):
    folder, _ = trained("nodes")
    labels = np.array([0, 1, 2, -1] * 5)
    known = graph(tmp_path / "known.npz", 20, labels=labels, seed=1)
    (found,) = score(folder, [known])
    assert found.examples == 20
    assert [row.expected for row in found.rows[0]] == [str(n) if n >= 0 else None for n in labels]
    right = [row.answer == row.expected for row in found.rows[0] if row.expected]
    assert found.metrics["accuracy"]["values"][0] == sum(right) / 15
    bare = dict(np.load(known))
    del bare["labels"]
    np.savez(tmp_path / "bare.npz", **bare)
    (alone,) = score(folder, [str(tmp_path / "bare.npz")])
    assert alone.metrics == {}
    # The labels do not change the answers.
    assert [row.answer for row in alone.rows[0]] == [row.answer for row in found.rows[0]]


def test_recordings_and_images_without_labels_are_answered(trained, tmp_path):
    folder, _ = trained("sounds")
    for take in range(2):
        put(tmp_path / "new" / f"rec_{take}.wav", tone(300, 8000, 0.1), rate=8000)
    (found,) = score(folder, [str(tmp_path / "new")])
    assert found.metrics == {}
    assert [(row.input, row.expected) for row in found.rows[0]] == [("rec_0.wav", None), ("rec_1.wav", None)]
    folder, file = trained("boxes")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes((Path(file) / "0.png").read_bytes())
    (found,) = score(folder, [str(tmp_path / "images")])
    assert found.metrics == {}
    assert [(row.input, row.expected) for row in found.rows[0]] == [("a", None)]


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


def test_unknown_symbols_are_left_out_and_their_lines_reported(trained, tmp_path):
    (tmp_path / "x.tsv").write_text("ab\tba\nażb\tba\nac\tbż\n")
    (found,) = score(trained("pairs")[0], [str(tmp_path / "x.tsv")])
    assert [note.partition(": ")[2] for note in found.notes[:2]] == [
        "1 of 3 examples have source symbols that do not occur in training and are left out: line 2",
        "1 of 3 examples have target symbols that do not occur in training: line 3",
    ]
    # Without its unknown symbol, line 2 equals line 1. An expected answer with an unknown symbol is never correct.
    assert found.rows[0][1].answer == found.rows[0][0].answer
    assert found.rows[0][2].expected == "bż"


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
