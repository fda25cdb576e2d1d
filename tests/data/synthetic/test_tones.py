import numpy as np

from attnlab.data.audio.frames import LogMel, hertz, mel
from attnlab.data.synthetic import tones

SIZES = {"train": 20, "valid": 10, "test": 3}


def test_words_alternate_and_are_a_function_of_the_seed():
    parts = tones.parts(SIZES, 8000, 7)
    assert {part: len(found) for part, found in parts.items()} == SIZES
    assert [each.label for each in parts["train"]] == [*tones.WORDS, *tones.WORDS]
    assert len(tones.WORDS) == 10
    again = tones.parts(SIZES, 8000, 7)
    for one, other in zip(parts["train"], again["train"], strict=True):
        np.testing.assert_array_equal(one.samples, other.samples)
    assert len({each.samples.tobytes() for found in parts.values() for each in found}) == 33
    assert not np.array_equal(parts["test"][0].samples, tones.parts(SIZES, 8000, 8)["test"][0].samples)
    for each in parts["train"]:
        assert 0.2 * 8000 <= len(each.samples) <= 0.45 * 8000
        assert abs(np.mean(each.samples**2) - 1) < 1e-3


def test_a_word_has_the_formants_of_its_vowels_in_their_order():
    heard = LogMel()
    centres = hertz(np.linspace(0, mel(4000), 42)[1:-1])
    sound = tones.word(np.random.default_rng(0), ("i", "a"), 8000)
    frames = heard(sound)
    # The upper tone falls from about 2290 Hz to about 1090 Hz. The voice (12%) and the width of a band shift both.
    above = centres > 900
    first, last = (centres[above][frames[n][above].argmax()] for n in (4, -5))
    assert 0.8 < first / 2290 < 1.2
    assert 0.8 < last / 1090 < 1.2
