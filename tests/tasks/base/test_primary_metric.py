"""Checks that the primary metric of a user's own pairs is chosen from their references."""

import numpy as np
import pytest

from attnlab.data.batches import pad
from attnlab.data.io.files import DataError
from attnlab.data.text.example import Example
from attnlab.data.text.units import Bpe, Bytes, Characters, Words
from attnlab.data.text.vocabulary import END
from attnlab.tasks import Parallel
from attnlab.tasks.base.primary_metric import primary_metric
from attnlab.tasks.synthetic.reverse import Reverse

WORDS = [("rot", "red"), ("grün", "green"), ("blau", "blue"), ("gelb", "yellow")]
PHONES = [("szavak", "s ɒ v ɒ k"), ("szó", "s oː"), ("vas", "v ɒ ʃ"), ("kos", "k o ʃ")] * 16
NOUNS = [("Hund", "dog"), ("Vogel", "bird"), ("Mann", "man"), ("Junge", "boy")]
PLACES = [("Haus", "house"), ("Baum", "tree"), ("Garten", "garden"), ("See", "lake")]
TEMPLATES = [
    (f"ein {noun[0]} {verb[0]} {how[0]} zum {place[0]}", f"a {noun[1]} {how[1]} {verb[1]} to the {place[1]}")
    for noun in NOUNS
    for place in PLACES
    for verb in (("läuft", "runs"), ("geht", "walks"))
    for how in (("oft", "often"), ("nie", "never"))
]
SENTENCES = [("ein hund läuft", "a dog runs past me ."), ("zwei hunde", "two dogs and a small cat here .")]
CHINESE = [("the weather is fine", "今天天气很好我们去公园玩吧"), ("i read books", "我每天晚上都在家里看书")]
JAPANESE = [("the weather is fine", "今日はとても天気がいいですね"), ("i read books", "毎晩家で本を読んでいます")]
THAI = [("hello", "สวัสดีครับผมชื่อสมชาย"), ("thanks", "ขอบคุณมากสำหรับความช่วยเหลือ")]
CUT = [("the weather is fine", "今天 天气 很 好 我们 去 公园 玩"), ("i read books", "我 每天 晚上 都 在 家里 看书")]
COLOURS = [("rot", "red"), ("rot", "crimson"), ("grün", "green")]
IDIOMS = [("one word", "一石二鳥"), ("two words", "七転八起")]
RUNS = [[(k + n) % 4 + 1 for n in range(6)] for k in range(16)]
DIGITS = [(" ".join(map(str, run)), " ".join(map(str, run[::-1]))) for run in RUNS]


def given(pairs):
    """Returns parts that all hold these pairs. In valid and test, the pairs of one source are one example."""
    targets = {}
    for source, target in dict.fromkeys(pairs):
        targets.setdefault(source, []).append(target)
    examples = [Example(source, tuple(answers)) for source, answers in targets.items()]
    many = [Example(source, (target,)) for source, target in pairs]
    return {"train": many, "valid": examples, "test": examples}


@pytest.mark.parametrize(
    ("pairs", "metric", "why"),
    [
        (WORDS, "exact_match", "references are short (median 1 word)"),
        (
            COLOURS,
            "word_error_rate",
            "references are short (median 1 word) and 2 of 4 examples have several references",
        ),
        (IDIOMS, "exact_match", "references are short (median 1 word)"),
        (PHONES, "word_error_rate", "sources are single words and references consist of a few distinct symbols"),
        (DIGITS, "exact_match", "references consist of a few distinct symbols"),
        (SENTENCES, "bleu", "references are sentences (median 7 words)"),
        (TEMPLATES, "bleu", "references are sentences (median 7 words)"),
        (CHINESE, "bleu_zh", "references have no spaces between words"),
        (JAPANESE, "bleu_characters", "references have no spaces between words"),
        (THAI, "bleu_characters", "references have no spaces between words"),
        (CUT, "bleu", "references are sentences (median 7.5 words)"),
    ],
)
def test_the_primary_metric_is_chosen_from_the_references(pairs, metric, why):
    parts = given(pairs)
    found = primary_metric(parts)
    assert (found.metric.name, found.why) == (metric, why)
    # Every chosen metric distinguishes perfect answers from wrong ones.
    references = [list(example.targets) for example in parts["test"]]
    best = found.measure([accepted[-1] for accepted in references], references)[metric]
    worst = found.measure(["#" for _ in references], references)[metric]
    assert best == pytest.approx(1 if found.metric.higher else 0)
    assert worst == pytest.approx(0 if found.metric.higher else 1, abs=1e-3)


@pytest.mark.parametrize(
    "words",
    ["мама мыла раму вечером", "किताब मेज़ पर रखी", "כלב גדול רץ בגינה", "السَّلامُ عَلَيْكُمْ يا صَدِيقي"],
    ids=["Russian", "Hindi", "Hebrew", "Arabic"],
)
def test_few_words_of_any_script_are_sentences_and_not_symbols(words):
    lines = [(f"line {n}", " ".join(words.split()[n % 4 :] + words.split()[: n % 4])) for n in range(100)]
    assert primary_metric(given(lines)).metric.name == "bleu"
    # Phones with diacritics are symbols, although they consist of several characters.
    phones = ["t͡ɕʰː", "ɑ̃ː", "k", "n̪ʲː"]
    lines = [(f"w{n}", " ".join(phones[n % 4 :] + phones[: n % 4])) for n in range(100)]
    assert primary_metric(given(lines)).metric.name == "word_error_rate"


def test_several_references_of_sentences_stay_with_bleu():
    assert (
        primary_metric(given([*SENTENCES, ("ein hund läuft", "a dog is running past me ."), *SENTENCES])).metric.name
        == "bleu"
    )


def test_any_reference_is_right_and_the_rate_is_of_examples():
    parts = given([("rot", "red"), ("rot", "crimson"), ("grün", "green"), ("blau", "blue"), ("weiß", "white")])
    references = [list(example.targets) for example in parts["test"]]
    found = primary_metric(parts).measure(["crimson", "grey", "blue", "rot"], references)
    # By hand: two of four answers are not among the references.
    assert (found["word_error_rate"], found["exact_match"]) == (0.5, 0.5)


def test_bleu_by_characters_by_hand():
    # One of seven characters differs: the precisions of runs of one to four are 6/7, 5/6, …, without a brevity penalty.
    found = primary_metric(given(JAPANESE)).measure(["あいうえおかき"], [["あいうえおかく"]])["bleu_characters"]
    assert found == pytest.approx((6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25)


def test_bleu_of_chinese_by_hand():
    """A Latin word is one token. The sixth of seven tokens differs, and with it the runs that contain it."""
    found = primary_metric(given(CHINESE)).measure(["今天天气很好 GPU"], [["今天天气很坏 GPU"]])["bleu_zh"]
    assert found == pytest.approx((6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25)


@pytest.mark.parametrize("units", [Characters(), Bytes(), Words(), Bpe(size=40)], ids=lambda units: units.kind)
def test_the_choice_depends_on_the_data_and_not_on_variants(write, units):
    problem = Parallel(**write(WORDS), units=units, smoothing=0.1, buckets=1).load()
    assert (problem.metric.name, problem.metric.higher) == ("exact_match", True)
    assert problem.notes[0] == (
        "primary metric: exact_match, because references are short (median 1 word); task.metric=NAME selects another"
    )
    assert problem.count_scored("test") == 4


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes files of pairs and returns the fields that name them."""

    def write(pairs, **parts):
        fields = {}
        for part in ("train", "valid", "test"):
            path = tmp_path / f"{part}.tsv"
            rows = parts.get(part, pairs)
            path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
            fields[part] = str(path)
        return fields

    return write


def test_requested_metric_is_used_without_a_note(write):
    problem = Parallel(**write(WORDS), metric="word_edit_rate").load()
    assert (problem.metric.name, problem.metric.higher) == ("word_edit_rate", False)
    assert not [note for note in problem.notes if "primary metric" in note]


@pytest.mark.parametrize("metric", ["bleu", "bleu_tokenised_lower", "bleu_zh"])
def test_bleu_that_would_be_0_for_perfect_answers_is_refused(write, metric):
    words = rf"^task\.metric='{metric}' counts n-grams of 4 tokens.*valid.*would score 0; use task\.metric=exact_match$"
    with pytest.raises(DataError, match=words):
        Parallel(**write(WORDS), metric=metric).load()
    assert Parallel(**write(WORDS), metric="bleu_characters").load().metric.name == "bleu_characters"


@pytest.mark.parametrize("short", ["valid", "test"])
@pytest.mark.parametrize("long", [SENTENCES * 4, JAPANESE * 4])
def test_bleu_is_not_chosen_if_perfect_answers_to_a_part_would_have_0(write, long, short):
    brief = WORDS[:3] if long[0] in SENTENCES else [("a", "赤"), ("b", "青")]
    problem = Parallel(**write(long, **{"train": [*long, *brief], short: brief})).load()
    assert problem.metric.name == "exact_match"
    assert "primary metric: exact_match, because references " in problem.notes[0]
    assert problem.score(short, perfect(problem, short))["exact_match"] == 1


def perfect(problem, part):
    """Returns the references of a part as its answers."""
    ids = [[*problem.target.encode(example.targets[0], known=True), END] for example in problem._parts[part]]
    return [{"tokens": pad(ids)}]


def test_groups_whose_references_are_too_short_for_bleu_are_left_out_and_said(tmp_path):
    lines = [
        f"{source}\t{target}\t{name}\n"
        for name, pairs in (("s", SENTENCES), ("w", WORDS[:1]))
        for source, target in pairs
    ]
    files = {part: tmp_path / f"{part}.tsv" for part in ("train", "valid", "test")}
    for file in files.values():
        file.write_text("".join(lines))
    problem = Parallel(**{part: str(file) for part, file in files.items()}, grouped=True).load()
    assert problem.metric.name == "bleu"
    scores = problem.score("test", perfect(problem, "test"))
    assert (scores["bleu"], scores["bleu.s"], scores["exact_match"]) == (pytest.approx(1), pytest.approx(1), 1)
    assert "bleu.w" not in scores
    said = "perfect answers would have bleu.w 0, because all references are shorter than its n-grams; it is left out"
    assert [note for note in problem.notes if "bleu" in note][1:] == [f"valid: {said}", f"test: {said}"]


def test_a_scored_file_whose_references_are_too_short_for_bleu_has_the_other_metrics(write, tmp_path):
    task = Parallel(**write(SENTENCES))
    trained = task.load()
    (tmp_path / "words.tsv").write_text("ein hund\ta dog\n")
    problem = task.with_test(trained, str(tmp_path / "words.tsv"))
    scores = problem.score("test", perfect(problem, "test"))
    assert scores == {"chrf": 1, "word_edit_rate": 0, "exact_match": 1}
    assert "words.tsv: perfect answers would have bleu 0, because all" in problem.notes[-1]
    assert "bleu" in trained.score("test", perfect(trained, "test"))


def test_a_task_whose_references_are_all_too_short_refuses_bleu():
    sizes = {"train_examples": 20, "valid_examples": 4, "test_examples": 4}
    with pytest.raises(DataError, match=r"perfect answers would have bleu 0.*; choose another primary metric$"):
        Reverse(metric="bleu", train_longest=3, longest=3, **sizes).load()
    assert Reverse(metric="bleu", train_longest=6, longest=6, **sizes).load().metric.name == "bleu"


def test_bleu_of_words_is_refused_where_there_are_no_spaces(write):
    with pytest.raises(DataError, match=r"use task\.metric=bleu_zh$"):
        Parallel(**write(CHINESE), metric="bleu").load()


@pytest.mark.parametrize(
    ("pairs", "fields", "hint"),
    [
        (PHONES, {}, "task.target_units=words"),
        (PHONES, {"target_units": Words()}, ""),
        (CHINESE, {"units": Words()}, "task.target_units=characters"),
        (WORDS, {"units": Words()}, "task.target_units=characters"),
        (WORDS, {}, ""),
        (SENTENCES, {"units": Words()}, ""),
    ],
)
def test_better_units_for_the_targets_are_suggested(write, pairs, fields, hint):
    notes = [note for note in Parallel(**write(pairs), **fields).load().notes if "target_units" in note]
    assert len(notes) == bool(hint)
    assert all(hint in note for note in notes)


def test_a_source_with_several_targets_is_one_example_of_the_test_and_separate_pairs_in_training(write):
    rows = [("rot", "red"), ("grün", "green"), ("rot", "crimson"), ("rot", "red"), ("grün", "green")]
    problem = Parallel(**write(rows, train=[*rows, ("weiß", "white")]), buckets=1).load()
    (batch,) = problem.eval_batches("test")
    # Repeated lines with one target remain separate examples. The three lines of "rot" become one example.
    assert len(batch["source"]) == 3
    assert len(problem.buckets.rows[0]) == 6
    assert problem.metric.name == "word_error_rate"
    line = "1 source has several targets; each becomes one example with several references (3 lines)"
    assert [note for note in problem.notes if line in note and "test.tsv" in note]
    assert not [note for note in problem.notes if line in note and "train.tsv" in note]
    for answer, rate in (("red", 0), ("crimson", 0), ("green", 1)):
        tokens = np.array(batch["target"])
        tokens[0] = 0
        ids = problem.target.encode(answer)
        tokens[0, : len(ids)] = ids
        assert problem.score("test", [{"tokens": tokens}])["word_error_rate"] == pytest.approx(rate / 3)


def test_repeated_sources_are_reported_for_merged_examples(write):
    rows = [("rot", "red"), ("rot", "crimson"), ("grün", "green")]
    other = [("schwarz", "black"), ("schwarz", "ebony"), ("weiß", "white")]
    test = [("rot", "ruby"), ("rot", "scarlet"), ("lila", "purple")]
    problem = Parallel(**write(rows, valid=other, test=test)).load()
    assert "test: 1 of 2 sources is also in train" in problem.notes
    # The targets of the same source in train are not references of the test example.
    assert problem._parts["test"][0].targets == ("ruby", "scarlet")
