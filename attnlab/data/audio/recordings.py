"""Labelled recordings: folders of one's own wav files, brought to one rate and one loudness."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import gcd
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np

from attnlab.data.audio import waves
from attnlab.data.io import folders
from attnlab.data.io.files import DataError, user_path
from attnlab.data.names import composed

RATES = (4_000, 384_000)  # samples a second of what is read
LONGEST = 30.0  # seconds of what is taken for one word
QUIET = 1e-4  # the root mean square of the quietest recording that is made as loud as the others


class Recording(NamedTuple):
    """One word: `samples` [N] float32 whose mean square is one, the name of its class, and its own."""

    samples: np.ndarray
    label: str
    name: str


Parts = dict[str, list[Recording]]  # "train", "valid", "test"


def load_recording(wave: waves.Wave, label: str, name: str, rate: int, least: int = 2) -> Recording:
    """A wave as a recording of `rate`. Raises DataError naming it where it is no such thing.

    That is: of a rate outside 4,000 … 384,000, longer than half a minute, or shorter than `least` samples at `rate`.
    """
    if not RATES[0] <= wave.rate <= RATES[1]:
        raise DataError(f"{name} has {wave.rate:,} samples a second: {RATES[0]:,} to {RATES[1]:,} are read")
    if (seconds := len(wave.samples) / wave.rate) > LONGEST:
        raise DataError(f"{name} lasts {seconds:.1f} seconds: a recording of one word lasts {LONGEST:g} at most")
    samples = resampled(wave, rate)
    if len(samples) < least:
        raise DataError(f"{name} lasts {seconds:.3f} seconds: at least {least / rate:.3f}, one frame, are needed")
    return Recording(level(samples), label, name)


def short(recording: Recording) -> str:
    """The name of a recording without the folders that say nothing of it: yes/anna.wav, or yes_anna.wav.

    >>> short(Recording(np.zeros(2), "yes", "/home/me/words/yes/anna.wav"))
    'yes/anna.wav'
    """
    path = PurePath(recording.name)
    return f"{path.parent.name}/{path.name}" if composed(path.parent.name) == recording.label else path.name


def resampled(wave: waves.Wave, rate: int) -> np.ndarray:
    """The samples at another rate, by a polyphase filter that keeps what lies below half of either."""
    if wave.rate == rate:
        return wave.samples
    # Slower to import than all the rest of this room.
    from scipy.signal import resample_poly

    shared = gcd(rate, wave.rate)
    return resample_poly(wave.samples, rate // shared, wave.rate // shared).astype(np.float32)


def level(samples: np.ndarray) -> np.ndarray:
    """(x − x̄) / max(rms, 0.0001): without their mean, as loud as all others, of mean square one.

    What is quieter than 0.0001, silence with its noise, is made 10,000 times as loud and stays quieter than the others.

    >>> level(np.array([1.0, 3.0, 1.0, 3.0], np.float32)).tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    samples = samples - samples.mean(dtype=np.float64)
    loudness = np.sqrt(np.mean(np.square(samples, dtype=np.float64)))
    return (samples / max(loudness, QUIET)).astype(np.float32)


def folder(path: str, rate: int, least: int = 2, strict: bool = True) -> tuple[list[Recording], tuple[str, ...]]:
    """The wav files under a folder, in the order of their paths, and what a person should know of how they were read.

    A file in a folder below is labelled by the name of the folder it lies in (yes/anna.wav is "yes"); one that lies in
    `path` itself by what stands before the first underscore of its name (yes_anna.wav). Names that begin with a dot
    are passed over. Raises DataError where the folder is missing or has no such file, a file has no label (unless
    `strict` is False: its label is ""), and as
    `folders.files`, `waves.read` and `load_recording`.
    """
    root = user_path(path)
    if not root.is_dir():
        raise DataError(f"{path} is no folder: one of wav files is needed, in a subfolder for each class")
    found, other, rates = [], 0, Counter()
    for file in folders.files(root):
        name = str(file)
        if file.suffix.lower() != ".wav":
            other += 1
            continue
        wave = waves.read(file)
        rates[wave.rate] += 1
        found.append(load_recording(wave, _label(root, file, strict), name, rate, least))
    if not found:
        raise DataError(f"{path} holds no wav file")
    return found, tuple(_notes(path, rate, rates, other))


def asked(path: str, classes: Sequence[str], rate: int, least: int = 2) -> tuple[list[Recording], tuple[str, ...]]:
    """The wav files that `folder` reads, to be answered; of those without a class the label is "".

    They have none where the folder has no subfolders and no name begins with one of `classes` and an underscore.
    Raises DataError as `folder`, and for a class that is none of `classes`.
    """
    root = user_path(path)
    flat = root.is_dir() and all(file.parent == root for file in folders.files(root))
    found, notes = folder(path, rate, least, strict=not flat)
    if flat and not {each.label for each in found} & {*classes}:
        found = [each._replace(label="") for each in found]
        return found, (*notes, f"{path}: read as recordings without classes")
    for each in found:
        if each.label not in classes:
            raise DataError(
                f"{each.name} is labelled {each.label!r}, none of the {len(classes)} classes trained with: "
                f"{', '.join(classes[:12])}"
            )
    return found, notes


def known(parts: Parts) -> tuple[str, ...]:
    """The classes of the part to train with, in the order of their names.

    Raises DataError where there are fewer than two, where another part has one that training never hears, and where
    the name of one is several others with a comma, semicolon, plus or bar between them.
    """
    classes = tuple(sorted({each.label for each in parts["train"]}))
    for recordings in parts.values():
        for each in recordings:
            names = [composed(name.strip()) for name in re.split(r"[,;+|]", each.label)]
            if len(names) > 1 and {*names} <= {*classes}:
                raise DataError(f"{each.name} is labelled {each.label!r}, {len(names)} classes: a recording has one")
    if len(classes) < 2:
        raise DataError(f"there is nothing to tell apart: all recordings to train with are {', '.join(classes)!r}")
    for part, recordings in parts.items():
        for each in recordings:
            if each.label not in classes:
                raise DataError(f"{each.name} of {part} is labelled {each.label!r}, which training never hears")
    return classes


def absent(classes: Sequence[str], parts: Parts) -> tuple[str, ...]:
    """A note for each part that lacks classes."""
    lacks = {part: sorted({*classes} - {each.label for each in recordings}) for part, recordings in parts.items()}
    return tuple(f"{part} has no recording of {', '.join(names)}" for part, names in lacks.items() if names)


def ambiguous(parts: Parts) -> tuple[str, ...]:
    """A note for each part with recordings, equal sample by sample, of several classes: only one can be answered."""
    notes = []
    for part, recordings in parts.items():
        found: dict[bytes, dict[str, Recording]] = {}
        for each in recordings:
            found.setdefault(each.samples.tobytes(), {}).setdefault(each.label, each)
        if several := [list(alike.values()) for alike in found.values() if len(alike) > 1]:
            first = " and ".join(each.name for each in several[0])
            stand = "1 recording stands" if len(several) == 1 else f"{len(several)} recordings stand"
            notes.append(f"{part}: {stand} in several classes, and a recording is scored by one: {first}")
    return tuple(notes)


def _label(root: Path, file: Path, strict: bool = True) -> str:
    *folders, _ = file.relative_to(root).parts
    if len(folders) == 1:
        return composed(folders[0])
    if folders:
        raise DataError(f"{file} lies deeper than a folder for each class: which of its folders is the class?")
    label, mark, _ = file.stem.partition("_")
    if not strict and not (mark and label):
        return ""
    if not mark or not label:
        raise DataError(f"{file} has no label: put it in a folder named by its class, or name it label_….wav")
    return composed(label)


def _notes(path: str, rate: int, rates: Counter, other: int) -> Iterator[str]:
    strange = {other: count for other, count in sorted(rates.items()) if other != rate}
    if strange:
        told = ", ".join(f"{count} of {other:,}" for other, count in strange.items())
        yield f"{path}: {sum(strange.values())} recordings resampled to {rate:,} samples a second ({told})"
    if other:
        yield f"{path}: {other} files that are no wav were passed over"
