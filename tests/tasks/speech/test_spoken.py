import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.speech.spoken import Sounds, Spoken, Tones
from tests.data.audio.test_recordings import put, tone


def test_user_folders_of_recordings(tmp_path):
    for n, part in enumerate(("train", "valid", "test")):
        for take in range(2):
            put(tmp_path / part / "low" / f"{take}.wav", tone(300, 16_000, 0.2 + 0.01 * n), rate=16_000)
            put(tmp_path / part / f"high_{take}.wav", tone(2000, 8000, 0.1))
    folders = {part: str(tmp_path / part) for part in ("train", "valid", "test")}
    problem = Sounds(**folders, bands=8).load()
    assert problem.classes == ("high", "low")
    assert len(problem.notes) == 6
    # Files with other names but the same sound are reported.
    pairs = (("valid", "train"), ("test", "train"), ("test", "valid"))
    assert problem.notes[3:] == tuple(f"{part}: 2 of 4 examples are also in {other}" for part, other in pairs)
    assert problem.notes[0] == f"{tmp_path}/train: 2 recordings are resampled to 8,000 Hz (2 from 16,000 Hz)"
    assert problem.batch(0, 0, 2)["source"].shape[::2] == (2, 8)
    assert Sounds(**folders, bands=4).load().vocabulary == problem.vocabulary
    for take in range(2):
        (tmp_path / "valid" / f"high_{take}.wav").unlink()
    assert "valid has no recording of high" in Sounds(**folders, bands=8).load().notes
    with pytest.raises(DataError, match=r"train is both task\.train and task\.test"):
        Sounds(**folders | {"test": folders["train"]}).load()
    put(tmp_path / "test" / "other_1.wav", tone(2000, 8000, 0.1))
    with pytest.raises(DataError, match=r"other_1\.wav of test is labelled 'other'"):
        Sounds(**folders).load()
    with pytest.raises(ValueError, match=r"task\.valid='' must be the path of a folder"):
        Sounds(train="x").load()


def test_tones_need_no_data():
    task = Tones(digits=2, train_examples=20, valid_examples=10, test_examples=11)
    problem = task.load()
    assert len(problem.classes) == 10
    assert problem.notes == ()
    kept = np.concatenate([batch["keep"].any(axis=1) for batch in problem.eval_batches("test")])
    assert kept.sum() == 11


def test_digits_of_the_official_split(published):
    published("fsdd")
    problem = Spoken(digits=1).load()
    assert problem.classes == tuple("0123456789")
    test = problem.eval_batches("test")
    assert sum(batch["keep"].any(axis=1).sum() for batch in test) == 300
    assert np.concatenate([batch["label"].max(axis=1) for batch in test]).max() == 9
    # The mean and deviation of the training part also approximately normalize the test digits.
    frames = np.concatenate([batch["source"][batch["keep"]] for batch in test])
    assert np.abs(frames.mean(axis=0)).max() < 0.3
    np.testing.assert_allclose(frames.std(axis=0), 1, atol=0.2)
    assert 0.2 < (problem.batch(0, 0, 8)["keep"]).mean() <= 1


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"digits": 0}, r"task\.digits=0"),
        ({"speaker": "nobody"}, r"task\.speaker='nobody' is not known"),
        ({"gap": -0.1}, r"task\.gap=-0\.1 must be in 0 … 10"),
        ({"speed": 0.9}, r"task\.speed=0\.9 must be in 0 … 0\.5"),
        ({"noise": float("nan")}, r"task\.noise=nan"),
        ({"shift": True}, r"task\.shift=True"),
        ({"rate": 100}, r"task\.rate=100"),
        ({"bands": 200}, r"task\.bands=200 with task\.rate=8000: .* band 0 is narrower"),
        ({"buckets": 0}, r"task\.buckets=0"),
        ({"seed": -1}, r"task\.seed=-1"),
    ],
)
def test_invalid_values_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        Spoken(**fields)
