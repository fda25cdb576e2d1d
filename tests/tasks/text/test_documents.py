import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.base.shapes import Classes, Tokens
from attnlab.tasks.text.documents import DocumentPairs, Documents, PairOfDocuments

SMALL = {"shortest": 20, "longest": 60, "valid_examples": 20, "test_examples": 300}


@pytest.fixture(scope="module")
def single():
    return Documents(kinds=3, **SMALL).load()


@pytest.fixture(scope="module")
def pairs():
    return DocumentPairs(**SMALL).load()


def texts(batch):
    """Returns the documents of a batch as bytes, [N] or [N 2]."""
    source, keep = batch["source"].reshape(-1, 60), batch["keep"].reshape(-1, 60)
    found = [bytes((ids[kept] - 1).astype(np.uint8)) for ids, kept in zip(source, keep, strict=True)]
    return found if batch["source"].ndim == 2 else list(zip(found[::2], found[1::2], strict=True))


def test_a_document_has_sentences_of_its_class(single):
    assert single.shape == Classes(Tokens(257, 60), 3)
    assert single.classes == ("kind 1", "kind 2", "kind 3")
    batch = single.batch(0, 0, 40)
    assert {name: (x.shape, x.dtype) for name, x in batch.items()} == {
        "source": ((40, 60), np.int32), "keep": ((40, 60), np.bool_), "label": ((40,), np.int32),
    }  # fmt: skip
    assert set(batch["label"].tolist()) == {0, 1, 2}
    for text, label in zip(texts(batch), batch["label"], strict=True):
        assert 20 <= len(text) <= 60
        first = text.split(b" .")[0] + b" ."
        pool = single._pools["train"][f"kind {label + 1}"]
        assert any(sentence.startswith(first[:20]) for sentence in pool)


def test_half_of_the_pairs_have_one_class_and_half_have_two(pairs):
    assert pairs.shape == PairOfDocuments(Tokens(257, 60), 2)
    batch = pairs.batch(0, 0, 400)
    assert batch["source"].shape == batch["keep"].shape == (400, 2, 60)
    assert abs(batch["label"].mean() - 0.5) < 0.1
    pools = pairs._pools["train"]
    of = lambda text: [name for name, pool in pools.items() if any(one.startswith(text[:16]) for one in pool)]
    for (one, other), same in list(zip(texts(batch), batch["label"], strict=True))[:60]:
        # The first sixteen bytes may occur in both classes.
        assert same or not set(of(one)) & set(of(other)) or len(of(one)) + len(of(other)) > 2
        assert not same or set(of(one)) & set(of(other))
        assert one[:16] != other[:16]


@pytest.mark.parametrize("name", ["single", "pairs"])
def test_batches_are_a_function_of_seed_and_step_and_parts_differ(name, request):
    problem = request.getfixturevalue(name)
    again = problem.task.load()
    assert again.fingerprint == problem.fingerprint
    np.testing.assert_array_equal(problem.batch(1, 2, 4)["source"], again.batch(1, 2, 4)["source"])
    for other in ((1, 3), (2, 2)):
        assert (problem.batch(1, 2, 4)["source"] != problem.batch(*other, 4)["source"]).any()
    valid, test = (problem.eval_batches(part, 20)[0]["source"] for part in ("valid", "test"))
    assert (valid != test).any()
    batches = problem.eval_batches("test")
    assert problem.score("test", [{"label": batch["label"]} for batch in batches]) == {"accuracy": 1.0}


def test_prompt_is_text(single, pairs):
    batch = single.encode_prompt("vu é")
    assert batch["source"].shape == (1, 60)
    assert single.tokens(batch)["source"] == ["v", "u", "20", "c3", "a9"]
    pair = pairs.encode_prompt("vu zo ||| mu")
    assert pair["source"].shape == (1, 2, 60)
    assert pairs.tokens(pair) == {"source": ["v", "u", "20", "z", "o"], "target": ["m", "u"]}
    same = lambda source, keep, key=None: jnp.array([0.0, 5.0])
    assert pairs.format_answer(pairs.answer(same, pair)).startswith("same (99.")
    for problem, text, words in (
        (single, " ", "is empty"), (single, "a" * 61, "has 61 bytes, but the model reads at most 60"),
        (pairs, "one", r"separated by .*, got 1"), (pairs, "a ||| b ||| c", "got 3$"), (pairs, "a |||", "is empty"),
        (single, "a\udcff b", r"U\+DCFF at position 2 is an unpaired surrogate, not a character"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            problem.encode_prompt(text)


def test_user_lines_and_too_few_of_them(tmp_path):
    for part in ("train", "valid", "test"):
        rows = [f"{label} {part} sentence {n} of {label}" for n in range(9) for label in ("good", "bad")]
        (tmp_path / part).write_text("\n".join(rows))
    files = {part: str(tmp_path / part) for part in ("train", "valid", "test")}
    problem = Documents(text="own", **files, **SMALL).load()
    assert problem.classes == ("bad", "good")
    for text, label in zip(texts(problem.batch(0, 0, 20)), problem.batch(0, 0, 20)["label"], strict=True):
        assert (b"of bad" if label else b"of good") not in text
        assert text.startswith(b"train sentence")
    with pytest.raises(DataError, match=r"task\.text=own: the train part has .* bytes of sentences of class 'bad'"):
        Documents(text="own", **files, shortest=20, longest=400).load()
    with pytest.raises(ValueError, match=r"task\.train='' must be the path of a file"):
        Documents(text="own").load()


def test_no_sentence_is_in_two_parts(tmp_path):
    for part in ("train", "valid", "test"):
        rows = [f"{label} {part} sentence {n} of {label}" for n in range(9) for label in ("good", "bad")]
        (tmp_path / part).write_text(
            "\n".join([*rows, "bad in all parts", f"good {'in two' if part != 'test' else 'so'}"])
        )
    files = {part: str(tmp_path / part) for part in ("train", "valid", "test")}
    pools = Documents(text="own", **files, **SMALL).load()._pools
    held = {part: {one for each in pool.values() for one in each} for part, pool in pools.items()}
    assert [len(held[part]) for part in ("train", "valid", "test")] == [18, 19, 20]
    assert not held["train"] & held["valid"] | held["train"] & held["test"] | held["valid"] & held["test"]
    with pytest.raises(DataError, match=r"train is both task\.train and task\.valid"):
        Documents(text="own", **files | {"valid": files["train"]}, **SMALL).load()


def own(folder, **lines):
    """Writes a file of `lines` for each part, and returns a task that reads these files."""
    for part, each in lines.items():
        (folder / part).write_text("\n".join(each))
    return Documents(text="own", **{part: str(folder / part) for part in lines}, **SMALL)


def rows(part, count=40, classes=("good", "bad")):
    return [f"{label} {part} sentence {n} of {label}" for n in range(count) for label in classes]


def test_changed_line_changes_the_fingerprint(tmp_path):
    lines = {part: rows(part) for part in ("train", "valid", "test")}
    task = own(tmp_path, **lines)
    before = task.load()
    assert before.fingerprint == task.load().fingerprint
    for part, each in lines.items():
        # Changes one of hundreds of sentences, whichever documents are drawn first.
        for n in range(0, len(each), 19):
            changed = [*each[:n], each[n] + "!", *each[n + 1 :]]
            assert own(tmp_path, **lines | {part: changed}).load().fingerprint != before.fingerprint


def test_skipped_lines_and_missing_classes_are_reported(tmp_path):
    lines = {part: rows(part) for part in ("train", "valid", "test")}
    notes = own(tmp_path, **lines | {"valid": ["", *lines["valid"]]}).load().notes
    assert notes[0].endswith("valid: 1 line (1) is empty and skipped")
    lacking = rows("valid", classes=("good",))
    with pytest.raises(DataError, match=r"task\.text=own: the valid part has no sentence of class 'bad'"):
        own(tmp_path, **lines | {"valid": lacking}).load()
    shared = [row.replace("valid", "test") if row.startswith("bad") else row for row in lines["valid"]]
    with pytest.raises(DataError, match=r"has no sentence of class 'bad' that is not in a later part"):
        own(tmp_path, **lines | {"valid": shared}).load()


def test_published_sentences_are_read(published):
    published("text_classification")
    problem = Documents(text="sst2", shortest=300, longest=400, valid_examples=5, test_examples=20).load()
    assert problem.classes == ("negative", "positive")
    assert problem.batch(0, 0, 2)["keep"].sum() >= 600


def test_question_documents_use_the_classes_with_enough_sentences(published):
    published("text_classification")
    problem = DocumentPairs(text="trec", shortest=64, longest=128, valid_examples=5, test_examples=20).load()
    assert sorted(problem._pools["test"]) == ["DESC", "ENTY", "HUM", "LOC", "NUM"]
    # There are 86 for training and validation, and nine for the test.
    assert "95 sentences of the class ABBR are left out, because they are too few for documents" in problem.notes


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "imdb"}, r"task\.text='imdb'"),
        ({"train": "file"}, r"task\.train='file' requires task\.text=own, got task\.text=drawn"),
        ({"shortest": 0}, r"task\.shortest=0"),
        ({"shortest": 1001}, r"task\.shortest=1001 must be at most task\.longest=1000"),
        ({"kinds": 1}, r"task\.kinds=1"),
        ({"tilt": 0}, r"task\.tilt=0 must be above 0 and at most 8"),
        ({"tilt": float("nan")}, r"task\.tilt=nan must be above 0"),
        ({"test_examples": 0}, r"task\.test_examples=0"),
        ({"seed": -1}, r"task\.seed=-1"),
    ],
)
def test_invalid_values_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Documents(**fields)


def test_sentences_repeated_in_a_later_part_are_removed_and_reported(tmp_path):
    sentence = "{} the sentence of number {} is long enough for some documents to be made of it and no other".format
    lines = lambda *numbers: "".join(sentence("ab"[n % 2], n) + "\n" for n in numbers)
    for part, numbers in {"train": range(30), "valid": range(28, 38), "test": range(34, 44)}.items():
        (tmp_path / part).write_text(lines(*numbers))
    problem = Documents(
        text="own", **{part: str(tmp_path / part) for part in ("train", "valid", "test")}, **SMALL
    ).load()
    assert [note for note in problem.notes if "sentences" in note] == [
        "train: 2 of 30 sentences are left out, because they occur earlier in this part or in a later part",
        "valid: 4 of 10 sentences are left out, because they occur earlier in this part or in a later part",
    ]


def test_documents_share_no_sentence_even_if_a_file_repeats_it(tmp_path):
    sentence = "{}{:02d}{} ".format
    for part in ("train", "valid", "test"):
        lines = [f"{kind} {sentence(kind, n, part[:2])}" for kind in "ab" for n in range(20)]
        (tmp_path / part).write_text("\n".join(lines * 5 + ["b a07" + part[:2]]))
    files = {part: str(tmp_path / part) for part in ("train", "valid", "test")}
    problem = DocumentPairs(text="own", **files, **SMALL | {"shortest": 30, "longest": 40}).load()
    assert (
        "test: 161 of 201 sentences are left out, because they occur earlier in this part or in a later part"
        in problem.notes
    )
    width, shared = 40, 0
    for batch in problem.eval_batches("test"):
        source = batch["source"].reshape(-1, 2, width)
        for one, other in source:
            # All sentences of a document but the last are whole.
            words = [set(bytes((ids[ids > 0] - 1).astype(np.uint8)).split(b" ")[:-1]) for ids in (one, other)]
            shared += bool(words[0] & words[1])
    assert shared == 0
