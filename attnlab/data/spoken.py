"""Free Spoken Digit Dataset: ten digits spoken fifty times each by six people (Jackson et al. 2018; CC BY-SA 4.0)."""

import re

from attnlab.data import archives, waves
from attnlab.data.files import DataError, Source, read
from attnlab.data.names import check
from attnlab.data.recordings import Parts, heard

# All its recordings; the repository itself serves them one by one.
RECORDINGS = Source(
    set="fsdd",
    file="recordings.tar.xz",
    sha256="6d897a604b8046dd2ef128ed833fda5d91fe180f2d3ed82d20598c29264f2f70",
    size=13_500_748,
    url="https://github.com/Jakobovski/free-spoken-digit-dataset",
    packed=True,
)
SOURCES = (RECORDINGS,)
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
NAME = re.compile(rf"(?:.*/)?((\d)_({'|'.join(SPEAKERS)})_(\d+))\.wav")
TESTED, VALIDATED = range(0, 5), range(5, 10)  # of the fifty times that a person says a digit


def parts(rate: int = 8000, speaker: str = "", least: int = 2) -> Parts:
    """The recordings in the order of their names; a digit is its class.

    The official split: of each person and digit the first five times, 300, are the test; the next five validate, and
    2,400 are left to train with. With a `speaker` all 500 of that person are the test instead, nobody else's, and of
    the others five times of each digit validate, 250, as before.

    Raises ValueError for a speaker that is not known; DataError as `files.read` does.
    """
    if speaker:
        check("task.speaker", speaker, SPEAKERS)
    found: Parts = {"train": [], "valid": [], "test": []}
    for path, content in sorted(archives.members(read(RECORDINGS), RECORDINGS.file).items()):
        name = NAME.fullmatch(path)
        if name is None:
            raise DataError(f"{RECORDINGS.file} holds {path!r}, which is no digit_speaker_index.wav")
        part = _part(name[3], int(name[4]), speaker)
        found[part].append(heard(waves.read(content, path), name[2], name[1], rate, least))
    return found


def _part(person: str, index: int, speaker: str) -> str:
    if person == speaker:
        return "test"
    if index in VALIDATED:
        return "valid"
    return "test" if index in TESTED and not speaker else "train"
