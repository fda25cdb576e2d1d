"""Spoken words: the public digits, folders of one's own, and sounds that are made here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.data import names, repeats
from attnlab.data.audio import recordings, spoken
from attnlab.data.audio.frames import LogMel
from attnlab.data.names import PARTS
from attnlab.data.synthetic import tones
from attnlab.tasks.base import checks
from attnlab.tasks.base.task import Task
from attnlab.tasks.speech.speech import SpeechData

# What a share or a number of seconds may be.
MOST = {"gap": 10.0, "speed": 0.5, "shift": 10.0, "noise": 10.0}


@dataclass(frozen=True)
class SpeechTask(Task):
    """Sounds in strings of `digits`, one or several joined: which are they? Scored by the share of them right.

    Strings have gap / 2 … `gap` seconds of silence around each sound, and come in log-mel frames of 25 ms every 10 ms
    with `bands` bands, of sound with `rate` samples a second. Every frame is asked for its class; a sound is answered
    by all its frames together. There are as many strings as sounds, each of which occurs `digits` times. Training
    varies each: up to a share `speed` faster or slower, up to `shift` bands higher or lower, under white noise of up
    to `noise` of its loudness. Batches come in `buckets` lengths.
    """

    training_only_fields = ("speed", "shift", "noise", "bands", "buckets")

    digits: int = 1
    gap: float = 0.0
    speed: float = 0.1
    shift: float = 1.0
    noise: float = 0.1
    bands: int = 40
    rate: int = 8000
    buckets: int = 3
    seed: int = 0

    def __post_init__(self):
        checks.counts(self, ["digits"], most=100)
        checks.counts(self, ["bands"], most=256)
        checks.counts(self, ["rate"], least=4000, most=96_000)
        checks.buckets(self)
        checks.seed(self)
        for field, most in MOST.items():
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise ValueError(f"task.{field}={value!r} must be in 0 … {most:g}")
        try:
            _ = LogMel(self.rate, self.bands).filters
        except ValueError as refusal:
            raise ValueError(f"task.bands={self.bands} with task.rate={self.rate}: {refusal}") from refusal

    def with_test(self, problem: Any, file: str) -> SpeechData:
        """The problem with a folder of wav files, in folders of the classes or without classes, as its test."""
        return problem.with_test(*recordings.asked(file, problem.words, self.rate, LogMel(self.rate).size), file)


@dataclass(frozen=True)
class Spoken(SpeechTask):
    """Spoken digits (FSDD), one or several joined: which are they? Scored by the share of digits right.

    The official split tests the first five of fifty times that a person says a digit; `speaker` tests that person
    instead, never heard in training. The rest as in `SpeechTask`.
    """

    speaker: str = ""

    def __post_init__(self):
        super().__post_init__()
        if self.speaker:
            names.check("task.speaker", self.speaker, spoken.SPEAKERS)

    def load(self) -> SpeechData:
        """Read the recordings, fetched where they are not at hand."""
        return SpeechData(self, spoken.parts(self.rate, self.speaker, LogMel(self.rate).size))


@dataclass(frozen=True)
class Sounds(SpeechTask):
    """Recordings of one's own, in folders of wav files: which class is each? Scored by the share right.

    `train`, `valid` and `test` name a folder each. A file in a subfolder is of the class that the subfolder is named
    by (yes/anna.wav); one in the folder itself of the class before the first underscore of its name (yes_anna.wav).
    Deeper ones are refused.
    What has another rate is resampled to `rate`. The rest as in `SpeechTask`.
    """

    train: str = ""
    valid: str = ""
    test: str = ""

    def load(self) -> SpeechData:
        """Read one's folders."""
        names = {part: getattr(self, part) for part in PARTS}
        for part, name in names.items():
            if not name:
                raise ValueError(f"task.{part}={name!r} must name a folder of wav files: one of yours")
        repeats.distinct(names)
        found = {part: recordings.folder(name, self.rate, LogMel(self.rate).size) for part, name in names.items()}
        notes = tuple(note for _, said in found.values() for note in said)
        return SpeechData(self, {part: heard for part, (heard, _) in found.items()}, notes)


@dataclass(frozen=True)
class Tones(SpeechTask):
    """Words of two vowels, made here of two tones each: which are they? Scored by the share of words right.

    Both orders of two vowels are words, so that a frame by itself does not tell. The rest as in `SpeechTask`.
    """

    train_examples: int = 500
    valid_examples: int = 100
    test_examples: int = 200

    def __post_init__(self):
        super().__post_init__()
        checks.examples(self, PARTS)

    def load(self) -> SpeechData:
        """Make the sounds."""
        sizes = {part: getattr(self, f"{part}_examples") for part in PARTS}
        return SpeechData(self, tones.parts(sizes, self.rate, self.seed))
