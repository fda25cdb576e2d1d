"""Labelled recordings: folders of a user's wav files, converted to one sample rate and one loudness."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import gcd
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np

from attnlab.data import repeats
from attnlab.data.audio import waves
from attnlab.data.io import folders
from attnlab.data.io.files import DataError, user_path
from attnlab.data.names import composed

RATES = (4_000, 384_000)  # the allowed range of samples per second
LONGEST = 30.0  # the longest recording of one word, in seconds
QUIET = 1e-4  # recordings whose root mean square is below this stay quieter than the others


class Recording(NamedTuple):
    """A recording of one word."""

    samples: np.ndarray
    """The samples [N] float32. Their mean square is one, except for very quiet recordings."""
    label: str
    """The name of the class."""
    name: str
    """The name of the recording, for example its path."""


Parts = dict[str, list[Recording]]  # by "train", "valid" and "test"


def load_recording(wave: waves.Wave, label: str, name: str, rate: int, least: int = 2) -> Recording:
    """Converts a wave to a recording with a given sample rate.

    Args:
      wave: the wave.
      label: the name of its class.
      name: the name of the recording, also used in messages.
      rate: samples per second of the result.
      least: the least number of samples of the result.

    Raises:
      DataError: if the rate of the wave is not in 4,000 … 384,000, it is longer than 30 seconds, or it has fewer than
        `least` samples at `rate`.
    """
    if not RATES[0] <= wave.rate <= RATES[1]:
        raise DataError(f"{name} has a sample rate of {wave.rate:,} Hz; expected {RATES[0]:,} to {RATES[1]:,} Hz")
    if (seconds := len(wave.samples) / wave.rate) > LONGEST:
        raise DataError(f"{name} lasts {seconds:.1f} seconds; a recording of one word must last at most {LONGEST:g}")
    samples = resampled(wave, rate)
    if len(samples) < least:
        raise DataError(f"{name} lasts {seconds:.3f} seconds; it must last at least {least / rate:.3f}, one frame")
    return Recording(level(samples), label, name)


def short(recording: Recording) -> str:
    """Returns the name of a recording without the folders that do not determine its class.

    The result is yes/anna.wav or yes_anna.wav.

    >>> short(Recording(np.zeros(2), "yes", "/home/me/words/yes/anna.wav"))
    'yes/anna.wav'
    """
    path = PurePath(recording.name)
    return f"{path.parent.name}/{path.name}" if composed(path.parent.name) == recording.label else path.name


def resampled(wave: waves.Wave, rate: int) -> np.ndarray:
    """Returns the samples of a wave at another rate.

    A polyphase filter removes frequencies above half of the lower rate.

    Args:
      wave: the samples and their rate.
      rate: the new rate, in samples per second.

    Returns:
      The new samples, float32.
    """
    if wave.rate == rate:
        return wave.samples
    # Imported here because importing scipy.signal is slow.
    from scipy.signal import resample_poly

    shared = gcd(rate, wave.rate)
    return resample_poly(wave.samples, rate // shared, wave.rate // shared).astype(np.float32)


def level(samples: np.ndarray) -> np.ndarray:
    """Removes the mean and normalizes loudness: (x − x̄) / max(rms, 0.0001), so that the mean square is one.

    Recordings with an rms below 0.0001, which are silence with noise, are amplified by 10,000 only, and stay quieter.

    >>> level(np.array([1.0, 3.0, 1.0, 3.0], np.float32)).tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    samples = samples - samples.mean(dtype=np.float64)
    loudness = np.sqrt(np.mean(np.square(samples, dtype=np.float64)))
    return (samples / max(loudness, QUIET)).astype(np.float32)


def folder(path: str, rate: int, least: int = 2, strict: bool = True) -> tuple[list[Recording], tuple[str, ...]]:
    """Reads the wav files under a folder, in the order of their paths.

    The label of a file in a subfolder is the name of the subfolder (yes/anna.wav is "yes"). The label of a file in the
    folder itself is the part of its name before the first underscore (yes_anna.wav). Names that begin with a dot are
    ignored.

    Args:
      path: the folder.
      rate: samples per second of the recordings.
      least: the least number of samples of a recording.
      strict: whether every file must have a label. If not, the label of a file without one is "".

    Returns:
      The recordings, and notes on the reading that the user should know.

    Raises:
      DataError: if the folder is missing or contains no wav file, or a file has no label and `strict` is True. Also as
        `folders.files`, `waves.read` and `load_recording`.
    """
    root = user_path(path)
    if not root.is_dir():
        raise DataError(f"{path} is not a folder; expected a folder of wav files with a subfolder for each class")
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
        raise DataError(f"{path} contains no wav file")
    return found, tuple(_notes(path, rate, rates, other))


def read_for_scoring(
    path: str, classes: Sequence[str], rate: int, least: int = 2
) -> tuple[list[Recording], tuple[str, ...]]:
    """Reads the wav files in a folder for inference, with their classes or without.

    The files have no classes if the folder has no subfolders, and no name begins with one of `classes` and an
    underscore. Then their labels are "".

    Args:
      path: the folder.
      classes: the classes that the model knows.
      rate: as in `folder`.
      least: as in `folder`.

    Returns:
      The recordings, and notes on the reading that the user should know.

    Raises:
      DataError: as `folder`, and for a class that is not one of `classes`.
    """
    root = user_path(path)
    flat = root.is_dir() and all(file.parent == root for file in folders.files(root))
    found, notes = folder(path, rate, least, strict=not flat)
    if flat and not {each.label for each in found} & {*classes}:
        found = [each._replace(label="") for each in found]
        return found, (*notes, f"{path}: the recordings are read without classes")
    for each in found:
        if each.label not in classes:
            raise DataError(
                f"{each.name} is labelled {each.label!r}, which is not one of the {len(classes)} classes of training: "
                f"{', '.join(classes[:12])}"
            )
    return found, notes


def known(parts: Parts) -> tuple[str, ...]:
    """Returns the classes of the training part, sorted by name.

    Raises:
      DataError: if there are fewer than two classes, or another part has a class that "train" lacks. Also if the name
        of a class is made of several other classes with a comma, semicolon, plus or bar between them.
    """
    classes = tuple(sorted({each.label for each in parts["train"]}))
    for recordings in parts.values():
        for each in recordings:
            names = [composed(name.strip()) for name in re.split(r"[,;+|]", each.label)]
            if len(names) > 1 and {*names} <= {*classes}:
                raise DataError(
                    f"{each.name} is labelled {each.label!r}, which are {len(names)} classes; a recording has one class"
                )
    if len(classes) < 2:
        raise DataError(f"all training recordings are of class {', '.join(classes)!r}; at least 2 classes are needed")
    for part, recordings in parts.items():
        for each in recordings:
            if each.label not in classes:
                raise DataError(f"{each.name} of {part} is labelled {each.label!r}, which does not occur in training")
    return classes


def absent(classes: Sequence[str], parts: Parts) -> tuple[str, ...]:
    """Returns a note for each part that lacks classes."""
    lacks = {part: sorted({*classes} - {each.label for each in recordings}) for part, recordings in parts.items()}
    return tuple(f"{part} has no recording of {', '.join(names)}" for part, names in lacks.items() if names)


def ambiguous(parts: Parts) -> tuple[str, ...]:
    """Returns a note for each part in which equal recordings, sample by sample, are in several classes."""
    found = {part: [(each.samples.tobytes(), each.label, each.name) for each in parts[part]] for part in parts}
    return repeats.ambiguous(found, "recording")


def _label(root: Path, file: Path, strict: bool = True) -> str:
    """Returns the label of a file by its subfolder or its name, as `folder` describes."""
    *folders, _ = file.relative_to(root).parts
    if len(folders) == 1:
        return composed(folders[0])
    if folders:
        raise DataError(f"{file} is nested too deeply; expected one level of subfolders, one for each class")
    label, mark, _ = file.stem.partition("_")
    if not strict and not (mark and label):
        return ""
    if not mark or not label:
        raise DataError(f"{file} has no label: put it in a folder named after its class, or name it label_….wav")
    return composed(label)


def _notes(path: str, rate: int, rates: Counter, other: int) -> Iterator[str]:
    """Yields notes on resampled recordings and on files that are not wav."""
    resampled = {before: count for before, count in sorted(rates.items()) if before != rate}
    if count := sum(resampled.values()):
        each = ", ".join(f"{count} from {before:,} Hz" for before, count in resampled.items())
        yield f"{path}: {count} {'recording is' if count == 1 else 'recordings are'} resampled to {rate:,} Hz ({each})"
    if other:
        yield f"{path}: {other} non-wav {'file is' if other == 1 else 'files are'} ignored"
