import numpy as np
import pytest

from attnlab.data.audio.recordings import Recording, absent, ambiguous, folder, known, level, load_recording, resampled
from attnlab.data.audio.waves import Wave
from attnlab.data.io.files import DataError
from tests.data.audio.test_waves import written

T = np.arange(16_000)


def tone(frequency: float, rate: int, seconds: float = 0.5) -> np.ndarray:
    return (8000 * np.sin(2 * np.pi * frequency * np.arange(round(rate * seconds)) / rate)).astype(np.int64)


def put(path, samples, depth=16, rate=8000):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written(samples << (depth - 16) if depth > 16 else samples >> (16 - depth), depth, rate))


def test_a_file_is_labelled_by_its_folder_or_by_its_name(tmp_path):
    for name in ("yes/anna.wav", "maybe/b.WAV", "no_1.wav", "yes_anna_2.wav", ".hidden/x.wav", "yes/.y.wav"):
        put(tmp_path / name, tone(440, 8000))
    (tmp_path / "yes" / "README").write_text("words")
    found, notes = folder(str(tmp_path), 8000)
    assert [(each.label, each.name.removeprefix(f"{tmp_path}/")) for each in found] == [
        ("maybe", "maybe/b.WAV"), ("no", "no_1.wav"), ("yes", "yes/anna.wav"), ("yes", "yes_anna_2.wav"),
    ]  # fmt: skip
    assert notes == (f"{tmp_path}: 1 non-wav file is ignored",)


def test_the_current_folder_is_read_like_its_path(tmp_path, monkeypatch):
    for name in ("maybe/b.wav", "yes_a.wav"):
        put(tmp_path / name, tone(440, 8000))
    monkeypatch.chdir(tmp_path)
    assert [each.label for each in folder(".", 8000)[0]] == ["maybe", "yes"]


def test_labels_that_are_equal_in_nfc_are_one(tmp_path):
    for name in ("gru\u0308n/a.wav", "gr\u00fcn/b.wav", "gru\u0308n_c.wav"):
        put(tmp_path / name, tone(440, 8000))
    assert {each.label for each in folder(str(tmp_path), 8000)[0]} == {"gr\u00fcn"}


def test_a_class_may_be_a_link_and_a_file_that_is_gone_is_named(tmp_path):
    put(tmp_path / "root" / "no" / "1.wav", tone(440, 8000))
    put(tmp_path / "elsewhere" / "1.wav", tone(440, 8000))
    (tmp_path / "root" / "yes").symlink_to(tmp_path / "elsewhere")
    found, _ = folder(str(tmp_path / "root"), 8000)
    assert [each.label for each in found] == ["no", "yes"]
    (tmp_path / "root" / "no" / "2.wav").symlink_to(tmp_path / "gone.wav")
    with pytest.raises(DataError, match=r"no/2.wav cannot be read"):
        folder(str(tmp_path / "root"), 8000)


def test_nested_folders_are_refused(tmp_path):
    for name in ("yes/anna/1.wav", "no/anna/1.wav", "no/ben/1.wav"):
        put(tmp_path / name, tone(440, 8000))
    with pytest.raises(DataError, match=r"no/anna/1.wav is nested too deeply"):
        folder(str(tmp_path), 8000)


def test_all_rates_and_depths_are_converted(tmp_path):
    for n, (rate, depth) in enumerate([(8000, 16), (16_000, 24), (11_025, 8), (44_100, 32), (16_000, 16)]):
        put(tmp_path / "a" / f"{n}.wav", tone(440, rate), depth, rate)
    found, notes = folder(str(tmp_path), 8000)
    assert notes == (
        f"{tmp_path}: 4 recordings are resampled to 8,000 Hz (1 from 11,025 Hz, 2 from 16,000 Hz, 1 from 44,100 Hz)",
    )
    first = found[0].samples
    for each in found:
        assert each.samples.dtype == np.float32
        assert abs(len(each.samples) - 4000) <= 1
        # All formats give the same tone, except at the ends, where the filter lacks samples.
        apart = each.samples[200:3800] - first[200:3800]
        assert np.sqrt(np.mean(apart**2)) < 0.02


def test_frequencies_above_half_the_rate_are_removed_and_others_kept():
    low, high = (tone(f, 32_000) / 8000 for f in (500, 9000))
    kept = resampled(Wave((low + high).astype(np.float32), 32_000), 8000)
    np.testing.assert_allclose(kept[200:-200], low[::4][200:-200], atol=5e-3)
    same = np.ones(5, np.float32)
    assert resampled(Wave(same, 8000), 8000) is same


def test_recordings_are_normalised_and_silence_stays_silent():
    sound = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    for scale in (1e-2, 1, 30):
        found = level(scale * sound + 0.5)
        assert abs(found.mean()) < 1e-5
        assert np.mean(found**2) == pytest.approx(1, rel=1e-4)
    assert not level(np.full(100, 0.25, np.float32)).any()
    assert np.sqrt(np.mean(level(1e-6 * sound) ** 2)) < 0.011


@pytest.mark.parametrize(
    ("wave", "said"),
    [
        (Wave(np.zeros(100, np.float32), 3999), "a sample rate of 3,999 Hz; expected 4,000 to 384,000 Hz"),
        (Wave(np.zeros(100, np.float32), 2**32 - 1), "a sample rate of 4,294,967,295 Hz"),
        (Wave(np.zeros(8000 * 31, np.float32), 8000), "lasts 31.0 seconds"),
        (Wave(np.zeros(398, np.float32), 16_000), "lasts 0.025 seconds; it must last at least 0.025, one frame"),
    ],
)
def test_an_invalid_recording_is_refused_by_name(wave, said):
    with pytest.raises(DataError, match=f"^a.wav .*{said}"):
        load_recording(wave, "a", "a.wav", 8000, 200)


def test_a_folder_that_cannot_be_read_is_refused(tmp_path):
    def refused(said):
        with pytest.raises(DataError, match=said) as error:
            folder(str(tmp_path / "w"), 8000)
        assert "\n" not in str(error.value)

    refused("w is not a folder")
    (tmp_path / "w").mkdir()
    refused("w contains no wav file")
    put(tmp_path / "w" / "yes.wav", tone(440, 8000))
    refused("yes.wav has no label")
    (tmp_path / "w" / "yes.wav").rename(tmp_path / "w" / "_yes.wav")
    refused("_yes.wav has no label")
    (tmp_path / "w" / "_yes.wav").unlink()
    (tmp_path / "w" / "a_1.wav").write_bytes(b"RIFFnothing")
    refused("a_1.wav is not a wav file")
    (tmp_path / "w" / "a_1.wav").write_bytes(written(np.zeros(800, np.int64), channels=2))
    refused("a_1.wav has 2 channels")


def test_classes_are_those_of_training():
    def one(label):
        return Recording(np.zeros(3, np.float32), label, f"{label}.wav")

    parts = {"train": [one("b"), one("a"), one("b")], "valid": [one("a")], "test": [one("b"), one("a")]}
    assert known(parts) == ("a", "b")
    assert absent(("a", "b"), parts) == ("valid has no recording of b",)
    with pytest.raises(DataError, match=r"c\.wav of test is labelled 'c', which does not occur in training"):
        known({**parts, "test": [one("a"), one("c")]})
    with pytest.raises(DataError, match="all training recordings are of class 'a'"):
        known({"train": [one("a")], "valid": [], "test": []})


def test_a_name_of_several_classes_is_refused():
    one = lambda label: Recording(np.ones(4, np.float32), label, f"{label}/1.wav")
    parts = {"train": [one("cat"), one("dog")], "valid": [one("cat")], "test": [one("dog, cat")]}
    with pytest.raises(
        DataError, match=r"^dog, cat/1.wav is labelled 'dog, cat', which are 2 classes; a recording has one class$"
    ):
        known(parts)
    # A label with a comma is one class unless its parts are classes.
    assert known({"train": [one("yes, sir"), one("no")]}) == ("no", "yes, sir")


def test_a_recording_in_several_classes_is_named():
    one = lambda value, label, name: Recording(np.full(4, value, np.float32), label, f"{label}/{name}.wav")
    train = [one(1, "cat", "a"), one(1, "dog", "a"), one(2, "cat", "b"), one(2, "cat", "c"), one(3, "dog", "d")]
    assert ambiguous({"train": train, "valid": train[2:], "test": [train[1]]}) == (
        "train: 1 recording is in several classes, of which only one can be correct: cat/a.wav and dog/a.wav",
    )
