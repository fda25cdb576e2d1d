"""Words of two vowels, each of two tones, synthesised: sounds that only their order tells apart."""

import numpy as np

from attnlab.data.audio.recordings import Parts, Recording, level
from attnlab.data.names import PARTS
from attnlab.data.rng import generator

# The first two formants in hertz, means over men (Peterson and Barney 1952, table II).
VOWELS = {"i": (270, 2290), "ae": (660, 1720), "a": (730, 1090), "u": (300, 870), "er": (490, 1350)}
# Both orders of five pairs: no stretch within a vowel says which of two words it belongs to.
PAIRS = (("i", "ae"), ("ae", "a"), ("a", "u"), ("u", "er"), ("er", "i"))
WORDS = {f"{first}-{last}": (first, last) for pair in PAIRS for first, last in (pair, pair[::-1])}
SECONDS = (0.20, 0.45)
NOISE = 0.05  # of the loudness of the tones


def parts(sizes: dict[str, int], rate: int, seed: int) -> Parts:
    """So many recordings of each part, words taking turns. A pure function of its arguments."""
    return {part: list(_draw(sizes[part], rate, generator(seed, n))) for n, part in enumerate(PARTS)}


def word(random: np.random.Generator, vowels: tuple[str, str], rate: int) -> np.ndarray:
    """Samples [N] of one word by one voice: two tones that stand, glide for a fifth of the time, and stand again.

    Voices differ by how high all tones lie (± 12%), how loud the upper one is, how long the word and its first vowel
    last; every sample has a little noise of its own.
    """
    seconds, place = random.uniform(*SECONDS), random.uniform(0.35, 0.65)
    t = np.arange(round(seconds * rate)) / rate
    share = np.clip((t / seconds - place) / 0.2 + 0.5, 0, 1)[:, None]
    first, last = (np.array(VOWELS[name]) for name in vowels)
    pitch = (first * (1 - share) + last * share) * random.uniform(0.88, 1.12)
    phase = 2 * np.pi * (np.cumsum(pitch, axis=0) / rate + random.uniform(size=2))
    tones = np.sin(phase) @ np.array([1, random.uniform(0.4, 1)])
    swell = np.sin(np.pi * np.arange(len(t)) / len(t)) ** 0.5
    return level((tones * swell + NOISE * random.standard_normal(len(t))).astype(np.float32))


def _draw(size: int, rate: int, random: np.random.Generator):
    names = list(WORDS)
    for n in range(size):
        name = names[n % len(names)]
        yield Recording(word(random, WORDS[name], rate), name, f"{name} {n}")
