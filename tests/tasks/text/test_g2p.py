import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text import cmudict, sigmorphon
from attnlab.tasks.text.g2p import CMUdict, Sigmorphon

DICTIONARY = "hello HH AH0 L OW1\nhello(2) HH EH0 L OW1\nhole HH OW1 L\n"


@pytest.fixture
def own(tmp_path):
    """Writes three small files in the format of the dictionary, and returns the fields that name them."""
    paths = {part: tmp_path / f"{part}.dict" for part in ("train", "valid", "test")}
    for path in paths.values():
        path.write_text(DICTIONARY, encoding="utf-8")
    return {part: str(path) for part, path in paths.items()}


def test_user_files_need_no_published_files(monkeypatch, own, tmp_path):
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path / "nowhere"))
    problem = CMUdict(**own).load()
    assert problem.target.vocabulary.symbols == ("AH", "EH", "HH", "L", "OW")
    assert sum(len(rows) for rows in problem.buckets.rows) == 3  # each pronunciation is in training
    assert (problem.metric.name, problem.metric.higher) == ("word_error_rate", False)


def test_any_pronunciation_is_right(own):
    problem = CMUdict(**own).load()
    (batch,) = problem.eval_batches("test")
    said = {"hello": ["HH", "EH", "L", "OW"], "hole": ["HH", "AH", "L"]}
    words = [problem.source.decode(row.tolist()) for row in batch["source"]]
    tokens = [[*problem.target.encode(" ".join(said[word])), 2, 0][:5] for word in words]
    scores = problem.score("test", [{"tokens": np.array([row + [0] * (5 - len(row)) for row in tokens])}])
    assert scores == {"word_error_rate": 0.5, "phoneme_error_rate": pytest.approx(1 / 7)}


def test_prompts_are_lower_cased_and_answers_have_spaces(own):
    problem = CMUdict(**own).load()
    assert (problem.encode_prompt("Hello ")["source"] == problem.encode_prompt("hello")["source"]).all()
    ids = problem.target.encode("HH OW L")
    assert problem.format_answer({"tokens": np.array([[*ids, 2]])}) == "HH OW L"
    with pytest.raises(DataError, match=r'"x" \(U\+0078\) at position 2'):
        problem.encode_prompt("hx")


def test_words_of_your_own_files_in_capitals_are_the_inputs_of_a_user(own, tmp_path):
    for path in own.values():
        (tmp_path / path).write_text(DICTIONARY.upper(), encoding="utf-8")
    task = CMUdict(**own)
    problem = task.load()
    assert (problem.encode_prompt("HELLO")["source"] == problem.encode_prompt("hello")["source"]).all()
    words = tmp_path / "words.txt"
    words.write_text("HOLE\n", encoding="utf-8")
    assert task.with_test(problem, str(words)).notes == (f"{words}: 1 of 1 sources is also in train",)


def test_a_broken_user_file_is_named_with_its_line(own, tmp_path):
    (tmp_path / "test.dict").write_text("hello HH AH0\nhole\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.dict, line 2: 'hole' has no phones"):
        CMUdict(**own).load()


def test_the_published_dictionary(published):
    published("cmudict")
    problem = CMUdict().load()
    assert problem.shape.source_vocabulary == 3 + 29
    assert problem.shape.target_vocabulary == 3 + 39
    # The longest word has 28 letters. With END and padding it has 32 symbols.
    assert (problem.shape.source_length, problem.shape.target_length) == (32, 32)
    assert sum(len(rows) for rows in problem.buckets.rows) == 114_626
    assert problem.buckets.padding < 0.25
    assert problem._sources.max() == problem.source.vocabulary.size - 1
    assert problem._targets.max() == problem.target.vocabulary.size - 1
    answers = [{"tokens": batch["target"]} for batch in problem.eval_batches("test")]
    assert problem.score("test", answers) == {"word_error_rate": 0.0, "phoneme_error_rate": 0.0}


def test_missing_data_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    for task, source in ((CMUdict(), cmudict.SOURCES[0]), (Sigmorphon("jpn"), sigmorphon.SOURCES["jpn_train.tsv"])):
        with pytest.raises(DataError, match="is missing") as error:
            task.load()
        assert source.url in str(error.value)
        assert str(tmp_path) in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("language", ["hun", "jpn", "hin"])
def test_the_published_languages(published, language):
    published("sigmorphon2020_g2p")
    problem = Sigmorphon(language).load()
    answers = [{"tokens": batch["target"]} for batch in problem.eval_batches("test")]
    # A phone that does not occur in training cannot be predicted. This concerns at most one word in 450.
    assert problem.score("test", answers)["word_error_rate"] <= 1 / 450 + 1e-9
    assert problem.buckets.padding < 0.4


def test_user_files_for_a_part_of_a_published_language(published, tmp_path):
    published("sigmorphon2020_g2p")
    path = tmp_path / "mine.tsv"
    path.write_text("fa\tf ɒ\n", encoding="utf-8")
    problem = Sigmorphon(test=str(path)).load()
    (batch,) = problem.eval_batches("test")
    assert problem.source.decode(batch["source"][0].tolist()) == "fa"
    assert len(problem.eval_batches("valid")) == 2


def copies(path):
    """Copies the file for each part, and returns the fields of a task that name the copies."""
    names = {part: path.with_name(part) for part in ("train", "valid", "test")}
    for name in names.values():
        name.write_bytes(path.read_bytes())
    return {part: str(name) for part, name in names.items()}


def test_one_file_as_two_parts_is_refused(tmp_path):
    written = tmp_path / "mine.tsv"
    written.write_text("fa\tf ɒ\n", encoding="utf-8")
    names = copies(written)
    with pytest.raises(DataError, match=r"mine\.tsv is both task\.train and task\.test; each part needs"):
        Sigmorphon(**names | {"train": str(written), "test": f"{tmp_path}/./mine.tsv"}).load()


def test_a_row_without_a_tab_is_named_with_its_line(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("fa\tf ɒ\nház h aː z\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"train, line 2: expected a word, a tab and its phones, got 'ház h aː z'"):
        Sigmorphon(**copies(path)).load()


def test_prompts_are_normalised_to_nfc(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("h\u00e1z\th aː z\n", encoding="utf-8")
    problem = Sigmorphon(**copies(path)).load()
    assert problem.notes[-1] == "test: 1 of 1 sources is also in valid"
    assert (problem.encode_prompt("ha\u0301z")["source"] == problem.encode_prompt("h\u00e1z")["source"]).all()


def test_unknown_language_names_the_nearest():
    with pytest.raises(ValueError, match=r"task\.language='hungarian' is not known; nearest: 'hun'; known: ady, "):
        Sigmorphon("hungarian")


@pytest.mark.parametrize("task", [CMUdict, Sigmorphon])
def test_buckets_are_checked(task):
    with pytest.raises(ValueError, match=r"task\.buckets=0"):
        task(buckets=0)
