"""Tasks of spoken words: public recordings of digits, your own folders, and synthetic sounds."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.data import names, repeats
from attnlab.data.audio import recordings, spoken
from attnlab.data.audio.frames import LogMel
from attnlab.data.names import PARTS
from attnlab.data.synthetic import tones
from attnlab.tasks.base import checks
from attnlab.tasks.base.parts import paths, sizes
from attnlab.tasks.base.task import Task
from attnlab.tasks.speech.speech import SpeechData

# The largest values of fields that are not integers.
MOST = {"gap": 10.0, "speed": 0.5, "shift": 10.0, "noise": 10.0}


@dataclass(frozen=True)
class SpeechTask(Task):
    """The base class of tasks of spoken words: strings of one or several sounds.

    Scored by the fraction of correct sounds.

    The sound is given as log-mel frames of 25 ms, one every 10 ms. Every frame is classified, and all frames of a sound
    together decide its class. There are as many strings as sounds, and each sound occurs in `digits` of them.
    """

    training_only_fields = ("speed", "shift", "noise", "bands", "buckets")

    digits: int = 1
    """The number of sounds in a string."""
    gap: float = 0.0
    """The longest silence before, between and after sounds, in seconds, in 0 … 10.

    Each silence lasts gap / 2 … gap. 0 means none.
    """
    speed: float = 0.1
    """The largest random change of the speed of training sounds, as a fraction in 0 … 0.5."""
    shift: float = 1.0
    """The largest random shift of training sounds up or down, in mel bands, in 0 … 10."""
    noise: float = 0.1
    """The largest loudness of white noise under training sounds, relative to theirs, in 0 … 10."""
    bands: int = 40
    """The number of mel bands of a frame."""
    rate: int = 8000
    """The sampling rate in Hz. Sounds with another rate are resampled."""
    buckets: int = 3
    """The largest number of different batch lengths. Strings are grouped by length to reduce padding."""
    seed: int = 0
    """The seed of the strings and of the training variations, in 0 … 2³²−1."""

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

    def with_test(self, problem: SpeechData, file: str) -> SpeechData:
        """Returns the data with a folder of wav files as the test part.

        The files may be in folders named by their classes.
        """
        return problem.with_test(
            *recordings.read_for_scoring(file, problem.words, self.rate, LogMel(self.rate).size), file
        )


@dataclass(frozen=True)
class Spoken(SpeechTask):
    """Spoken digits (FSDD), one or several in a string. Scored by the fraction of correct digits.

    The official split tests the first five of the fifty recordings of each digit by each speaker. The other fields are
    those of `SpeechTask`.
    """

    speaker: str = ""
    """The name of a speaker whose recordings are the test part and do not occur in training.

    "" uses the official split.
    """

    def __post_init__(self):
        super().__post_init__()
        if self.speaker:
            names.check("task.speaker", self.speaker, spoken.SPEAKERS)

    def load(self) -> SpeechData:
        """Reads the recordings. They are downloaded if they are not available locally."""
        return SpeechData(self, spoken.parts(self.rate, self.speaker, LogMel(self.rate).size))


@dataclass(frozen=True)
class Sounds(SpeechTask):
    """Your own recordings, in folders of wav files. Scored by the fraction of correct classes.

    The class of a file is the name of its subfolder (yes/anna.wav). For a file in the folder itself, it is the part of
    its name before the first underscore (yes_anna.wav). Deeper subfolders are refused. The other fields are those of
    `SpeechTask`.
    """

    train: str = ""
    """The path of the training folder."""
    valid: str = ""
    """The path of the validation folder."""
    test: str = ""
    """The path of the test folder."""

    def load(self) -> SpeechData:
        """Reads your folders."""
        names = paths(self)
        for part, name in names.items():
            if not name:
                raise ValueError(f"task.{part}={name!r} must be the path of a folder of wav files")
        repeats.distinct(names)
        found = {part: recordings.folder(name, self.rate, LogMel(self.rate).size) for part, name in names.items()}
        notes = tuple(note for _, lines in found.values() for note in lines)
        return SpeechData(self, {part: recorded for part, (recorded, _) in found.items()}, notes)


@dataclass(frozen=True)
class Tones(SpeechTask):
    """Synthetic words of two vowels, each made of two tones. Scored by the fraction of correct words.

    Both orders of two vowels are words, so that a single frame does not determine the word. The other fields are those
    of `SpeechTask`.
    """

    train_examples: int = 500
    """The number of training sounds."""
    valid_examples: int = 100
    """The number of validation sounds."""
    test_examples: int = 200
    """The number of test sounds."""

    def __post_init__(self):
        super().__post_init__()
        checks.examples(self, PARTS)

    def load(self) -> SpeechData:
        """Generates the sounds."""
        return SpeechData(self, tones.parts(sizes(self), self.rate, self.seed))
