"""Free Spoken Digit Dataset: ten digits spoken fifty times each by six people (Jackson et al. 2018; CC BY-SA 4.0)."""

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
TESTED, VALIDATED = range(0, 5), range(5, 10)  # of the fifty times that a person says a digit


def parts(rate: int = 8000, speaker: str = "", least: int = 2) -> Parts:
    """The recordings in the order of their names; a digit is its class.

    The official split: of each person and digit the first five times, 300, are the test; the next five validate, and
    2,400 are left to train with. With a `speaker` all 500 of that person are the test instead, nobody else's, and of
    the others five times of each digit validate, 250, as before.

    Raises ValueError for a speaker that is not known; DataError as `Bundle.read` does.
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
    if person == speaker:
        return "test"
    if index in VALIDATED:
        return "valid"
    return "test" if index in TESTED and not speaker else "train"
