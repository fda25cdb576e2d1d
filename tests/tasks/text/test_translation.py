import gzip
from pathlib import Path

import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text.units import Bpe, Bytes, Characters, Words
from attnlab.tasks import TASKS, Multi30k, Parallel, Scan

PAIRS = [
    "ein hund läuft\ta dog runs past me",
    "zwei hunde laufen\ttwo dogs run past us",
    "\t",
    "ein 𝄞 hund\ta 𝄞 dog he has",
]


@pytest.fixture
def own(tmp_path):
    """Writes three small files, and returns the fields that name them."""
    files = {part: tmp_path / f"{part}.tsv" for part in ("train", "valid", "test")}
    for path in files.values():
        path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(PAIRS).encode())
    return {part: str(path) for part, path in files.items()}


@pytest.mark.parametrize(
    "units", [Characters(), Bytes(), Words(), Bpe(size=60)], ids=lambda units: type(units).__name__
)
@pytest.mark.parametrize("joint", [False, True])
def test_user_files_in_any_units(own, units, joint):
    problem = Parallel(**own, units=units, joint=joint).load()
    assert (problem.source == problem.target) == (joint or isinstance(units, Bytes))
    (batch,) = problem.eval_batches("test")
    answers = [{"tokens": batch["target"]}]
    assert problem.score("test", answers) == {
        "bleu": pytest.approx(1),
        "bleu_tokenised_lower": pytest.approx(1),
        "chrf": pytest.approx(1),
        "word_edit_rate": 0,
        "exact_match": 1,
    }
    with_nats = problem.score("test", [answers[0] | {"nats": np.array([np.log(2) * 4, 0, 0])}])
    tokens = np.sum(batch["target"] != 0)
    assert with_nats["perplexity"] == pytest.approx(2 ** (4 / tokens))
    assert problem.format_answer({"tokens": batch["target"][2:]}) == "a 𝄞 dog he has"
    assert problem.notes == (
        "primary metric: bleu, because references are sentences (median 5 words); task.metric=NAME selects another",
        *(f"{own[part]}: 1 line (3) is empty and skipped" for part in ("train", "valid", "test")),
        "valid: 3 of 3 sources are also in train",
        "test: 3 of 3 sources are also in train",
        "test: 3 of 3 sources are also in valid",
    )


def test_two_line_aligned_files(own, tmp_path):
    for side, column in (("de", 0), ("en", 1)):
        lines = [pair.split("\t")[column] for pair in PAIRS]
        (tmp_path / f"x.{side}.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    both = f"{tmp_path / 'x.de.gz'},{tmp_path / 'x.en.gz'}"
    assert len(Parallel(**own | {"test": both}).load().eval_batches("test")[0]["source"]) == 3


def test_each_side_has_its_own_units(own):
    task = Parallel(**own, units=Words(), target_units=Characters())
    problem = task.load()
    assert set(problem.source.symbols) == {"ein", "hund", "läuft", "zwei", "hunde", "laufen", "𝄞"}
    assert "𝄞" in problem.target.symbols
    assert max(map(len, problem.target.symbols)) == 1
    found = task.text_interface(problem.vocabulary, "vocabulary.json")
    assert (found.source, found.target) == (problem.source, problem.target)


def test_scores_are_reported_for_each_group(own, tmp_path):
    rows = [f"{pair}\t{group}" for pair, group in zip(PAIRS, ("Bayern", "Baden", "", "Bayern"), strict=True)]
    grouped = {part: str(tmp_path / f"{part}-groups.tsv") for part in ("train", "valid", "test")}
    for name in grouped.values():
        Path(name).write_text("\n".join(rows), encoding="utf-8")
    problem = Parallel(**grouped, grouped=True, metric="exact_match").load()
    (batch,) = problem.eval_batches("test")
    tokens = np.array(batch["target"])
    tokens[1] = 0
    found = problem.score("test", [{"tokens": tokens}])
    assert found["exact_match"] == pytest.approx(2 / 3)
    assert (found["exact_match.Bayern"], found["exact_match.Baden"]) == (1, 0)
    with pytest.raises(DataError, match=r"groups.tsv, line 1: expected 1 tab, found 2:"):
        Parallel(**grouped).load()
    with pytest.raises(DataError, match=r"train.tsv, line 1: expected 2 tabs, found 1:"):
        Parallel(**own, grouped=True).load()
    with pytest.raises(DataError, match=r"groups are the third column of a single file, but these are two files"):
        Parallel(**grouped | {"valid": f"{own['valid']},{own['test']}"}, grouped=True).load()
    rows[1] = rows[1].removesuffix("Baden")
    Path(grouped["train"]).write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"groups.tsv, line 2: its group, the third column, is empty"):
        Parallel(**grouped, grouped=True).load()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"longest": 12}, r"train\.tsv, line 1: length 18 exceeds 12; truncate or skip the line, or allow more"),
        ({"train": "nowhere.tsv"}, r"nowhere\.tsv cannot be read: No such file"),
    ],
)
def test_invalid_user_data_are_refused(own, fields, words):
    with pytest.raises(DataError, match=words):
        Parallel(**own | fields).load()


def test_longer_lines_may_be_cut_or_left_out(own):
    cut = Parallel(**own, longest=16, longer="truncate").load()
    assert cut.shape.source_length == 20  # 16 letters and END, padded
    assert "2 lines (1, 2) are longer than 16 and truncated" in cut.notes[2]
    (batch,) = Parallel(**own, longest=16, longer="skip").load().eval_batches("test")
    assert len(batch["source"]) == 1


@pytest.mark.parametrize(
    ("task", "fields", "words"),
    [
        (Parallel, {}, r"task\.train='' must be the path of a file"),
        (Parallel, {"metric": "blue"}, r"task\.metric='blue' is not known; nearest: 'bleu'"),
        (Parallel, {"longest": -1}, r"task\.longest=-1"),
        (Parallel, {"target_units": "words"}, r"task\.target_units='words' must be a TokenizerSpec, .*, or none"),
        (Parallel, {"target_units": Words(), "joint": True}, r"task\.joint=True learns one vocabulary"),
        (Parallel, {"longer": "cut"}, r"task\.longer='cut' is not known"),
        (Multi30k, {"source": "fr"}, r"task\.source='fr' is not known"),
        (Multi30k, {"source": "en"}, r"task\.source='en' and task\.target='en' must differ"),
        (Multi30k, {"smoothing": 1.0}, r"task\.smoothing=1\.0 must be at least 0 and below 1"),
        (Multi30k, {"units": "bpe"}, r"task\.units='bpe' must be a TokenizerSpec"),
        (Multi30k, {"buckets": 0}, r"task\.buckets=0"),
        (Scan, {"split": "jump"}, r"task\.split='jump' is not known; nearest: 'addprim_jump'"),
    ],
)
def test_invalid_values_name_the_field(task, fields, words):
    with pytest.raises(ValueError, match=words):
        task(**fields).load()


def test_published_captions(published):
    published("multi30k")
    problem = TASKS["multi30k"].load()
    assert problem.source == problem.target
    assert problem.shape.source_vocabulary <= 10_000
    assert (problem.metric.name, problem.metric.higher) == ("bleu_tokenised_lower", True)
    answers = [{"tokens": batch["target"]} for batch in problem.eval_batches("test")]
    scores = problem.score("test", answers)
    # Only very few words do not occur in training and cannot be predicted.
    assert scores["bleu_tokenised_lower"] > 0.999
    assert {name for name in scores if "." in name} == {
        f"bleu_tokenised_lower.{length} words" for length in ("0-10", "11-15", "16-20", "21+")
    }
    assert problem.buckets.padding <= 0.15
    asked = problem.encode_prompt("Ein Mann, der schläft.")
    assert problem.source.decode(asked["source"][0].tolist()) == "ein mann , der schläft ."


def test_published_commands(published):
    published("scan")
    problem = TASKS["scan"].load()
    answers = [{"tokens": batch["target"]} for batch in problem.eval_batches("test")]
    assert problem.score("test", answers) == {"exact_match": 1.0}
    assert np.prod(problem.encode_prompt("jump twice")["source"].shape) >= 2
