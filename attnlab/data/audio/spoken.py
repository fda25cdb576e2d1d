"""Free Spoken Digit Dataset: six speakers say each of ten digits fifty times (Jackson et al. 2018; CC BY-SA 4.0)."""

import re

from attnlab.data.audio import waves
from attnlab.data.audio.recordings import Parts, load_recording
from attnlab.data.io.bundles import Bundle
from attnlab.data.names import check

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
NAME = re.compile(rf"((\d)_({'|'.join(SPEAKERS)})_([1-4]?\d))\.wav")
RECORDINGS = Bundle(
    set="fsdd",
    file="recordings.tar.xz",
    url="https://github.com/Jakobovski/free-spoken-digit-dataset",
    sha256="1801eae019c063377d98f831d3f93574f259475df7332bb0e3d1b080fb5e6959",
    chosen=lambda files: filter(NAME.fullmatch, files),
)
SOURCES = (RECORDINGS,)
TESTED, VALIDATED = range(0, 5), range(5, 10)  # indices among the fifty recordings of a speaker and digit


def parts(rate: int = 8000, speaker: str = "", least: int = 2) -> Parts:
    """Returns the recordings in the order of their names. The class is the digit.

    By default this is the official split. The first five recordings of each speaker and digit, 300, are the test part.
    The next five are the validation part, and 2,400 are for training. With a `speaker`, the test part is all 500
    recordings of this speaker. Five recordings of each other speaker and digit, 250, are the validation part, as
    before.

    Args:
      rate: samples per second of the recordings.
      speaker: the speaker to hold out for the test, or "" for the official split.
      least: the least number of samples of a recording.

    Raises:
      ValueError: if the speaker is not known.
      DataError: as `Bundle.read`.
    """
    if speaker:
        check("task.speaker", speaker, SPEAKERS)
    found: Parts = {"train": [], "valid": [], "test": []}
    for file, content in RECORDINGS.read().items():
        name, digit, person, index = NAME.fullmatch(file).groups()  # pyright: ignore[reportOptionalMemberAccess]
        part = _part(person, int(index), speaker)
        found[part].append(load_recording(waves.read(content, file), digit, name, rate, least))
    return found


def _part(person: str, index: int, speaker: str) -> str:
    """Returns the part of a recording."""
    if person == speaker:
        return "test"
    if index in VALIDATED:
        return "valid"
    return "test" if index in TESTED and not speaker else "train"
