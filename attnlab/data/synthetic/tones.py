"""Synthesized words of two vowels, each made of two tones. Every word occurs in both orders of its vowels."""

import numpy as np

from attnlab.data.audio.recordings import Parts, Recording, level
from attnlab.data.names import PARTS
from attnlab.data.rng import generator

# The first two formants in hertz, means over men (Peterson and Barney 1952, table II).
VOWELS = {"i": (270, 2290), "ae": (660, 1720), "a": (730, 1090), "u": (300, 870), "er": (490, 1350)}
# Both orders of five pairs, so that no part within a vowel determines which of two words it belongs to.
PAIRS = (("i", "ae"), ("ae", "a"), ("a", "u"), ("u", "er"), ("er", "i"))
WORDS = {f"{first}-{last}": (first, last) for pair in PAIRS for first, last in (pair, pair[::-1])}
SECONDS = (0.20, 0.45)
NOISE = 0.05  # the standard deviation of the noise; the lower tone has amplitude 1


def parts(sizes: dict[str, int], rate: int, seed: int) -> Parts:
    """Draws recordings, with words in turn. A pure function of its arguments.

    Args:
      sizes: the number of recordings of each part.
      rate: samples per second.
      seed: seed of the recordings.
    """
    return {part: list(_draw(sizes[part], rate, generator(seed, n))) for n, part in enumerate(PARTS)}


def word(random: np.random.Generator, vowels: tuple[str, str], rate: int) -> np.ndarray:
    """Synthesizes one word in a random voice.

    The two tones are constant, glide for a fifth of the time, and are constant again. Voices differ in pitch (± 12%),
    in the loudness of the upper tone, and in the lengths of the word and of its first vowel. Noise is added to every
    sample.

    Args:
      random: the generator.
      vowels: the two vowels, keys of `VOWELS`.
      rate: samples per second.

    Returns:
      The samples [N].
    """
    seconds, place = random.uniform(*SECONDS), random.uniform(0.35, 0.65)
    t = np.arange(round(seconds * rate)) / rate
    # The share of the second vowel [T 1]: 0, then a glide around `place`, then 1.
    share = np.clip((t / seconds - place) / 0.2 + 0.5, 0, 1)[:, None]
    first, last = (np.array(VOWELS[name]) for name in vowels)
    pitch = (first * (1 - share) + last * share) * random.uniform(0.88, 1.12)
    # The phase is the integral of the pitch, so that a glide has no jumps.
    phase = 2 * np.pi * (np.cumsum(pitch, axis=0) / rate + random.uniform(size=2))
    tones = np.sin(phase) @ np.array([1, random.uniform(0.4, 1)])
    swell = np.sin(np.pi * np.arange(len(t)) / len(t)) ** 0.5
    return level((tones * swell + NOISE * random.standard_normal(len(t))).astype(np.float32))


def _draw(size: int, rate: int, random: np.random.Generator):
    """Yields `size` recordings, with words in turn."""
    names = list(WORDS)
    for n in range(size):
        name = names[n % len(names)]
        yield Recording(word(random, WORDS[name], rate), name, f"{name} {n}")
