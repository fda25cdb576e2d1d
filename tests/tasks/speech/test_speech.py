import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.audio.recordings import Recording, level
from attnlab.data.io.files import DataError
from attnlab.mechanisms import Softmax
from attnlab.mechanisms.window import Local
from attnlab.models import Classifier
from attnlab.modules.position import POSITIONS
from attnlab.tasks.base.shapes import Classes, Frames
from attnlab.tasks.speech import speech
from attnlab.tasks.speech.collapse import collapse
from attnlab.tasks.speech.speech import SpeechData
from attnlab.tasks.speech.spoken import Tones
from tests.data.audio.test_waves import written

WORDS = ("high", "low")
TASK = Tones(digits=3, gap=0.1, bands=8, buckets=2)


def sound(frequency: float, seconds: float) -> np.ndarray:
    return level(np.sin(2 * np.pi * frequency * np.arange(round(8000 * seconds)) / 8000).astype(np.float32))


def made(count: int) -> list[Recording]:
    """Returns recordings of low and high tones in turn, each of a different length."""
    pitch = {"low": 300, "high": 2500}
    names = [WORDS[(n + 1) % 2] for n in range(count)]
    return [Recording(sound(pitch[name], 0.08 + 0.01 * n), name, f"{name} {n}") for n, name in enumerate(names)]


PARTS = {"train": made(10), "valid": made(4), "test": made(7)}


@pytest.fixture(scope="module")
def problem():
    return SpeechData(TASK, PARTS)


def ear(source, keep, key=None):
    """A model that predicts low, high or silence from the band that is loudest above its mean."""
    # If both bands are below their means, neither tone is present.
    low, high = source[:, 1], source[:, 6]
    silent = jnp.maximum(low, high) < 0
    return jnp.stack(
        [jnp.where(silent, -9.0, high), jnp.where(silent, -9.0, low), jnp.where(silent, 9.0, -9.0)], axis=1
    )


def test_every_frame_has_the_class_of_its_recording(problem):
    assert problem.shape == Classes(Frames(8, problem.shape.source.length), 3, each=True)
    assert problem.classes == ("high", "low", "·")
    for batch in (problem.batch(0, 0, 6), *problem.eval_batches("test")):
        source, keep, label, piece = (batch[name] for name in ("source", "keep", "label", "piece"))
        assert source.dtype == np.float32
        assert source.shape[:2] == keep.shape == label.shape == piece.shape
        assert source.shape[1] <= problem.shape.source.length
        # Padding follows the string and has no label.
        assert (np.diff(keep.astype(int), axis=1) <= 0).all()
        for values, none in ((source, 0), (label, -1), (piece, -1)):
            assert (values[~keep] == none).all()
        assert ((label == 2) == (keep & (piece == -1))).all()
        for row in range(len(keep)):
            if keep[row].any():
                pieces = piece[row][piece[row] >= 0]
                assert np.unique(pieces).tolist() == [0, 1, 2]
                assert (np.diff(pieces) >= 0).all()


def test_a_string_is_the_frames_of_its_recordings(problem):
    (rows, batch), *_ = problem._examined("test", None)
    order = problem._strings["test"].pieces[rows[0]]
    for n, index in enumerate(order):
        frames = problem.mel(PARTS["test"][index].samples)
        mine = batch["source"][0][batch["piece"][0] == n]
        np.testing.assert_allclose(mine * problem._spread + problem._mean, frames, atol=1e-4)


def test_batches_are_a_function_of_seed_and_step_and_their_shape_of_the_step(problem):
    again = SpeechData(TASK, PARTS)
    for name, values in problem.batch(1, 2, 5).items():
        np.testing.assert_array_equal(values, again.batch(1, 2, 5)[name])
        assert values.shape == problem.batch(2, 2, 5)[name].shape == problem.batch(1, 7, 5)[name].shape
    for other in (problem.batch(1, 3, 5), problem.batch(2, 2, 5)):
        assert not np.array_equal(problem.batch(1, 2, 5)["source"], other["source"])
    assert again.fingerprint == problem.fingerprint
    assert SpeechData(TASK, {**PARTS, "test": made(6)}).fingerprint != problem.fingerprint


def test_metrics_of_a_string(problem):
    for part, count in (("valid", 4), ("test", 7)):
        answers = [problem.answer(ear, batch) for batch in problem.eval_batches(part)]
        told = problem.score(part, answers)
        assert told["accuracy"] == told["exact_match"] == 1
        assert told["frame_accuracy"] > 0.97
        assert told["digit_error_rate"] == 0
        assert sum(batch["keep"].any(axis=1).sum() for batch in problem.eval_batches(part)) == count
        assert sum(batch["keep"].any(axis=1).sum() for batch in problem.eval_batches(part, 3)) == 3
    with pytest.raises(ValueError, match="part='train'"):
        problem.eval_batches("train")


def test_one_wrong_word_of_one_string_counts_once(problem):
    examined = problem.eval_batches("test", 4)
    answers = [jax.tree.map(np.array, problem.answer(ear, batch)) for batch in examined]
    answers[0]["word"][0, 1] ^= 1
    answers[0]["label"][0] = 2  # and without word positions only silence is recognised
    told = problem.score("test", answers, 4)
    assert told["accuracy"] == pytest.approx(11 / 12)
    assert told["exact_match"] == pytest.approx(3 / 4)
    assert told["digit_error_rate"] == pytest.approx(3 / 12)


def told(batch):
    """Returns the right answer, as far as the batch has words."""
    pieces = [
        [batch["label"][row][batch["piece"][row] == n][:1] for n in range(3)] for row in range(len(batch["label"]))
    ]
    return {
        "label": batch["label"],
        "word": np.array([[word[0] if len(word) else -1 for word in row] for row in pieces]),
    }


def test_a_long_evaluation_has_several_shapes_and_equal_scores(problem, monkeypatch):
    monkeypatch.setattr(speech, "EXAMINED", 2)
    several = SpeechData(TASK, PARTS)
    batches = several.eval_batches("test")
    assert {len(batch["keep"]) for batch in batches} <= {1, 2}
    assert len({batch["keep"].shape[1] for batch in batches}) == 2
    assert sum(batch["keep"].any(axis=1).sum() for batch in batches) == 7
    answers = [told(batch) for batch in batches]
    right = {"accuracy": 1, "frame_accuracy": 1, "exact_match": 1, "digit_error_rate": 0}
    assert several.score("test", answers) == right
    answers[-1]["word"][0, 2] ^= 1
    assert several.score("test", answers)["accuracy"] == pytest.approx(20 / 21)
    # A small limit gives one batch, in the order of the strings.
    (first,) = several.eval_batches("test", 2)
    for row in range(2):
        recording = PARTS["test"][problem._strings["test"].pieces[row, 0]]
        mine = first["label"][row][first["piece"][row] == 0]
        assert mine.tolist() == [WORDS.index(recording.label)] * len(problem.mel(recording.samples))


def test_a_gap_shorter_than_a_frame_is_refused():
    assert "gap" not in "".join(SpeechData(Tones(digits=2, bands=8), PARTS).classes)
    with pytest.raises(ValueError, match=r"^task\.gap=0\.004 must be 0 or at least half a frame of 0\.01 s$"):
        SpeechData(Tones(digits=2, gap=0.004, bands=8), PARTS)


def test_a_word_is_classified_by_all_its_frames():
    problem = SpeechData(Tones(bands=8), PARTS)
    # Two frames slightly favour the first word, one frame strongly favours the second. Padding would favour the first.
    chances = jnp.log(jnp.array([[[0.6, 0.4], [0.6, 0.4], [0.1, 0.9], [1.0, 1e-9]]]))
    batch = {
        "source": chances, "keep": np.array([[True, True, True, False]]),
        "label": np.array([[1, 1, 1, -1]]), "piece": np.array([[0, 0, 0, 0]]),
    }  # fmt: skip
    answer = problem.answer(lambda source, keep, key: source, batch)
    assert answer["label"].tolist() == [[0, 0, 1, -1]]
    assert answer["word"].tolist() == [[1]]
    odds = (0.4 * 0.4 * 0.9 / (0.6 * 0.6 * 0.1)) ** (1 / 3)
    assert float(answer["probability"][0, 0]) == pytest.approx(odds / (1 + odds), rel=1e-5)
    assert problem.format_answer(answer) == f"low ({odds / (1 + odds):.1%})"
    # The loss covers every frame and no padding.
    loss, told = problem.loss(lambda source, keep, key: source, batch, None)
    assert float(loss) == pytest.approx(-np.log(0.4 * 0.4 * 0.9) / 3, rel=1e-5)
    assert float(told["frame_accuracy"]) == pytest.approx(1 / 3)


def test_runs_of_frames_become_words():
    assert collapse([0] * 5 + [2] * 3 + [0] * 5) == [0]
    assert collapse([0] * 5 + [2] * 5 + [0] * 5) == [0, 2, 0]
    assert collapse([0, 1] * 9) == []
    # Only silence of several frames separates words, and silence is not a word.
    assert collapse([2] * 5 + [9] * 3 + [2] * 5 + [9] * 2 + [2] * 5 + [9] * 7, gap=9) == [2, 2]


def test_prompt_is_a_file_or_a_number(problem, tmp_path):
    path = tmp_path / "said.wav"
    silence = np.zeros(800)
    said = np.concatenate([sound(300, 0.2), silence, sound(2500, 0.2)])
    path.write_bytes(written((8000 * said).astype(np.int64)))
    asked = problem.encode_prompt(str(path))
    assert problem.format_answer(problem.answer(ear, asked)) == "low high"
    assert problem.tokens(asked)["source"] == [str(n) for n in range(problem.mel.count(len(said)))]
    asked = problem.encode_prompt("test:7")
    assert asked["source"].shape[0] == 1
    assert asked["keep"].all()
    true = [PARTS["test"][n].label for n in problem._strings["test"].pieces[6]]
    assert problem.format_answer(problem.answer(ear, asked)) == " ".join(true)
    assert set(problem.tokens(asked)["source"]) <= {"high", "low", "·"}
    path.write_bytes(written(np.arange(8000), rate=4000))
    for text, refusal in (
        ("test:8", "the test part has strings 1 … 7"), (" ", "must be the path of a wav file"),
        ("nothing.wav", "cannot be read"),
        (str(path), r"said\.wav lasts 1\.98 s, but the model reads at most 0\.\d\d s"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=refusal):
            problem.encode_prompt(text)


def test_answers_are_plotted(problem):
    batch = {name: x[:3] for name, x in problem.eval_batches("test")[0].items()}
    ((caption, png),) = problem.pictures(batch, problem.answer(ear, batch)).items()
    assert "spoken" in caption
    assert png.startswith(b"\x89PNG")


def network(mechanism, problem):
    model = Classifier(width=8, heads=2, layers=2, mechanism=mechanism, position=POSITIONS["rotary"])
    return model.create(jax.random.key(0), problem.shape)


def test_a_wide_window_equals_full_attention_and_a_narrow_one_is_local(problem):
    batch = problem.eval_batches("test")[0]
    source, keep = jnp.asarray(batch["source"][0]), jnp.asarray(batch["keep"][0])
    T = len(source)
    full, wide, narrow = (
        jax.jit(network(mechanism, problem)) for mechanism in (Softmax(), Local(T, T, block=8), Local(3, 3, block=8))
    )
    np.testing.assert_allclose(wide(source, keep), full(source, keep), atol=2e-5)
    # Two layers with a window of five frames reach exactly four frames to either side.
    other = narrow(source.at[12].add(1), keep) != narrow(source, keep)
    assert np.flatnonzero(other.any(axis=1)).tolist() == list(range(8, 17))
    assert np.abs(narrow(source, keep) - full(source, keep)).max() > 1e-3
