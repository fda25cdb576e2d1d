import gzip
import hashlib
from collections import Counter

import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.io.published import Source
from attnlab.data.text import scan
from attnlab.tasks import Scan


def test_rows_are_commands_and_actions():
    rows = list(scan.rows("IN: jump OUT: I_JUMP\r\n\nIN: walk twice OUT: I_WALK I_WALK", "x"))
    assert rows == [(("jump",), ("I_JUMP",)), (("walk", "twice"), ("I_WALK", "I_WALK"))]


@pytest.mark.parametrize(
    "row", ["jump OUT: I_JUMP", "IN: jump I_JUMP", "IN: OUT: I_JUMP", "IN: jump OUT:", "IN:", "IN: a OUT: b OUT: c"]
)
def test_a_line_of_another_form_is_named_with_its_number(row):
    with pytest.raises(
        DataError,
        match=r"own\.txt, line 3: expected 'IN: command OUT: actions', or a command, a tab and its actions, got ",
    ):
        list(scan.rows(f"IN: run OUT: I_RUN\n\n{row}\n", "own.txt"))


def test_your_own_file_has_either_form(tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text("jump twice\tI_JUMP I_JUMP\nIN: run\tOUT: I_RUN\njump twice\tI_JUMP I_JUMP\n")
    found = sorted((example.source, example.targets) for example in scan.read_user_file(str(path)))
    twice = ("jump", "twice"), (("I_JUMP", "I_JUMP"),)
    # A line that occurs twice counts twice, as in SCAN's own files.
    assert found == [twice, twice, (("run",), (("I_RUN",),))]
    path.write_text("jump twice\t\n")
    with pytest.raises(
        DataError, match=r"own.tsv, line 1: expected 'IN: command OUT: actions', .*, got .*; task\.empty=skip"
    ):
        scan.read_user_file(str(path))
    # Lines of either form that lack a side are left out if a list is given that collects their numbers.
    path.write_text("jump\t\nIN: run OUT:\nIN: OUT: I_RUN\n\tI_RUN\nIN: run\tOUT: I_RUN\n")
    assert scan.read_user_file(str(path), half := []) == [(("run",), (("I_RUN",),), "")]
    assert half == [1, 2, 3, 4]
    path.write_text("jump\n")
    with pytest.raises(DataError, match=r"own.tsv, line 1: expected 'IN: command OUT: actions', .*, got '[^']*'$"):
        scan.read_user_file(str(path), [])
    path.write_text("\n")
    with pytest.raises(DataError, match=r"own.tsv contains no commands$"):
        scan.read_user_file(str(path))


def test_your_own_files_are_all_that_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "parts", None)  # nothing is fetched
    names = {part: tmp_path / f"{part}.tsv" for part in ("train", "valid", "test")}
    for n, (part, path) in enumerate(names.items(), start=1):
        path.write_text("".join(f"walk {part} {k}\tI_WALK\n" for k in range(n)))
    task = Scan(**{part: str(path) for part, path in names.items()})
    assert task.unread == {"split": ""}
    problem = task.load()
    assert [len(problem._parts[part]) for part in names] == [1, 2, 3]
    assert Scan(train="a").unread == {}
    with pytest.raises(ValueError, match=r"task.split='other'"):
        Scan(split="other", train="a")


@pytest.mark.parametrize("form", ["IN: {} OUT: {}", "IN: {}\tOUT: {}", "{}\t{}"])
def test_a_test_file_of_either_form_is_scored_as_the_test_part(tmp_path, form):
    names = {part: str(tmp_path / f"{part}.txt") for part in ("train", "valid", "test")}
    for part, path in names.items():
        lines = [form.format(f"jump {part}", "I_JUMP I_JUMP"), form.format("run", "I_RUN")]
        (tmp_path / path).write_text("\n".join(lines))
    task = Scan(**names)
    problem = task.load()
    found = task.with_test(problem, names["test"])
    row = problem.target.encode("I_RUN")
    scores = [each.score("test", [{"tokens": np.array([row, row])}]) for each in (problem, found)]
    assert scores == [{"exact_match": 0.5}] * 2
    # Both sides are compared as texts, although the task's own examples are words.
    assert f"{names['test']}: 1 of 2 sources is also in train" in found.notes
    empty = tmp_path / "empty.txt"
    empty.write_text("IN: run OUT:\n")
    with pytest.raises(DataError, match=r"empty\.txt, line 1: expected .*; task\.empty=skip"):
        task.with_test(problem, str(empty))


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """Returns a function that makes these lines a published split."""

    def write(split, train, test):
        known = []
        for part, content in (("train", train), ("test", test)):
            file, bytes_ = f"tasks_{part}_{split}.txt", "".join(content).encode()
            (tmp_path / "scan").mkdir(exist_ok=True)
            (tmp_path / "scan" / f"{file}.gz").write_bytes(gzip.compress(bytes_))
            known.append(Source("scan", file, hashlib.sha256(bytes_).hexdigest(), len(bytes_), "https://x"))
        monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
        monkeypatch.setattr(scan, "SOURCES", {source.file: source for source in known})

    return write


def test_a_tenth_is_held_out_and_not_in_training(serve):
    once = [f"IN: walk {n} OUT: I_WALK {n}\n" for n in range(40)]
    serve("addprim_jump", [*once, *["IN: jump OUT: I_JUMP\n"] * 19], once[:3])
    parts = scan.parts("addprim_jump")
    assert [len(parts[part]) for part in ("train", "valid", "test")] == [54, 5, 3]
    sources = {part: Counter(example.source for example in parts[part]) for part in parts}
    assert not sources["train"].keys() & sources["valid"].keys()
    # The primitive stays in the training part, as often as before.
    assert sources["train"][("jump",)] == 19
    assert parts == scan.parts("addprim_jump")


def test_too_few_commands_that_occur_once_hold_out_fewer(serve):
    serve("simple", ["IN: jump OUT: I_JUMP\n"] * 30 + ["IN: run OUT: I_RUN\n"], ["IN: run OUT: I_RUN\n"])
    assert [len(part) for part in scan.parts("simple").values()] == [30, 1, 1]


def test_an_unknown_split_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="split='add_jump' is not known; nearest: 'addprim_jump'"):
        scan.parts("add_jump")


# The numbers of lines of train, valid and test, the longest actions of train, and the shortest actions of test.
SIZES = {
    "simple": (15_056, 1_672, 4_182, 48, 1),
    "length": (15_291, 1_699, 3_920, 22, 24),
    "addprim_jump": (13_203, 1_467, 7_706, 48, 2),
    "addprim_turn_left": (19_701, 2_189, 1_208, 48, 2),
}


@pytest.mark.parametrize("split", scan.SPLITS)
def test_the_published_splits(published, split):
    published("scan")
    parts = scan.parts(split)
    actions = {part: [len(example.targets[0]) for example in parts[part]] for part in parts}
    found = *(len(parts[part]) for part in ("train", "valid", "test")), max(actions["train"]), min(actions["test"])
    assert found == SIZES[split]
    commands = {part: {example.source for example in parts[part]} for part in parts}
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not commands[one] & commands[other]
    assert max(max(map(len, commands[part])) for part in parts) == 9
    assert len({word for part in parts for command in commands[part] for word in command}) == 13
    assert len({action for part in parts.values() for example in part for action in example.targets[0]}) == 6
    added = {"addprim_jump": ("jump",), "addprim_turn_left": ("turn", "left")}.get(split)
    if added:
        times = Counter(example.source for example in parts["train"])
        assert times[added] == len(parts["train"] + parts["valid"]) // 10
        assert set(times.values()) == {1, times[added]}
