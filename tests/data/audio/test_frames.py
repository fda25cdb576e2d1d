import numpy as np
import pytest

from attnlab.data.audio.frames import FLOOR, LogMel, hertz, mel

MEL = LogMel()
RANDOM = np.random.default_rng(0)


def tone(frequency: float, seconds: float = 0.2) -> np.ndarray:
    t = np.arange(round(8000 * seconds)) / 8000
    return np.sqrt(2) * np.sin(2 * np.pi * frequency * t).astype(np.float32)


def test_mel_is_1000_at_1000_hertz_and_is_inverted():
    assert mel(1000) == pytest.approx(1000, abs=0.02)
    assert mel(0) == 0
    np.testing.assert_allclose(hertz(mel(np.array([0.0, 55, 700, 4000]))), [0, 55, 700, 4000], atol=1e-9)
    # At 700 Hz the formula takes the logarithm of two.
    assert mel(700) == pytest.approx(2595 * np.log10(2))


def test_frames_lie_within_the_sound():
    assert (MEL.size, MEL.hop, MEL.points) == (200, 80, 512)
    for samples, frames in ((0, 0), (199, 0), (200, 1), (279, 1), (280, 2), (1000, 11)):
        assert MEL.count(samples) == frames
        if frames:
            assert MEL(np.zeros(samples, np.float32)).shape == (frames, 40)
    # Frame t begins at sample 80 t.
    click = np.zeros(1000, np.float32)
    click[410] = 1
    heard = MEL(click)[:, 20] > np.log(FLOOR) + 1
    assert np.flatnonzero(heard).tolist() == [3, 4, 5]


def test_a_pure_tone_is_loudest_in_the_band_around_it():
    centres = hertz(np.linspace(0, mel(4000), 42)[1:-1])
    for band in (0, 7, 20, 39):
        frames = MEL(tone(centres[band]))
        assert (frames.argmax(axis=1) == band).all()
        assert (
            np.delete(frames, [band - 1, band, band + 1] if 0 < band < 39 else band, axis=1).max(axis=1)
            < frames[:, band]
        ).all()
    # 100 times the amplitude is 100² times the power, in every frame and band that the tone reaches.
    loud = MEL(100 * tone(centres[20]))[:, 19:22] - MEL(tone(centres[20]))[:, 19:22]
    np.testing.assert_allclose(loud, 2 * np.log(100), atol=1e-3)


def test_power_is_that_of_the_windowed_sound():
    sound = RANDOM.standard_normal(200).astype(np.float32)
    window = np.hanning(202)[1:-1]
    power = MEL.power(sound)[0].astype(np.float64)
    # Parseval's theorem: both halves of the spectrum count, its two ends once.
    total = (power[0] + 2 * power[1:-1].sum() + power[-1]) / 512
    assert total == pytest.approx(np.sum((window * sound) ** 2) / np.sum(window**2), rel=1e-5)


def test_white_noise_of_variance_one_has_power_one_in_every_band():
    np.testing.assert_allclose(MEL.filters.sum(axis=0), 1, rtol=1e-6)
    noise = RANDOM.standard_normal(80_000).astype(np.float32)
    power = np.exp(MEL(noise)).mean(axis=0)
    # A band averages two or more lines of the spectrum over a thousand overlapping frames.
    np.testing.assert_allclose(power, 1, atol=0.16)
    assert abs(power.mean() - 1) < 0.03


def test_silence_is_the_floor_and_sounds_are_independent():
    assert (MEL(np.zeros(400, np.float32)) == np.float32(np.log(FLOOR))).all()
    sounds = RANDOM.standard_normal((3, 500)).astype(np.float32)
    np.testing.assert_allclose(MEL(sounds), np.stack([MEL(one) for one in sounds]), atol=1e-5)
    assert MEL(sounds).dtype == np.float32


@pytest.mark.parametrize("sizes", [{"rate": 50}, {"bands": 0}, {"step": 1e-5}])
def test_invalid_frames_are_refused(sizes):
    with pytest.raises(ValueError, match="a window must have at least 2 samples"):
        LogMel(**sizes)


def test_bands_narrower_than_a_frequency_bin_are_refused():
    with pytest.raises(ValueError, match="band 0 is narrower"):
        _ = LogMel(bands=250).filters
