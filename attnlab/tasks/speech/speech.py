"""The data of strings of spoken words: the word of each frame, and the words of the string."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.audio import waves
from attnlab.data.audio.frames import FLOOR, LogMel
from attnlab.data.audio.joined import NONE, Utterances, noisy, varied
from attnlab.data.audio.recordings import Parts, Recording, absent, ambiguous, known, load_recording, short
from attnlab.data.batches import Buckets, rounded
from attnlab.data.io.files import DataError, user_path
from attnlab.data.names import PARTS, check_part
from attnlab.data.repeats import hashes, repeated
from attnlab.data.rng import generator
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.classification import ClassificationData
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.metrics import DIGIT_ERROR_RATE, EXACT_MATCH, distance
from attnlab.tasks.base.models import Classifier
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.shapes import Classes, Frames
from attnlab.tasks.base.task import Row
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.speech.collapse import collapse
from attnlab.tasks.speech.spectrograms import spectrograms

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

EXAMINED = 50  # strings in an evaluation batch at most
SILENCE = float(np.log(FLOOR))
GAP = "·"  # the class of the silence between words, if there is any
CAPTION = "Log-mel frames over time, with the spoken words above and the predicted words below"


class SpeechData(ClassificationData):
    """The data of `Spoken`, `Sounds` and `Tones`: strings of `task.digits` recordings, in log-mel frames.

    Batches are {"source": [B T bands], "keep": [B T], "label": [B T], "piece": [B T]}. "label" is the class of each
    frame, and "piece" the recording in the string that it belongs to; −1 means neither. Bands are normalised by their
    mean and standard deviation over the training frames. Every frame is scored. `mean_words` says which
    word a recording is.

    Args:
        task: The task.
        parts: The recordings of "train", "valid" and "test".
        notes: Messages about how the recordings were read.

    Raises:
        ValueError: If `task.gap` is above 0 but less than half a frame.
    """

    more_metrics = (Metric("frame_accuracy", "%", 0, 1, higher=True), EXACT_MATCH, DIGIT_ERROR_RATE)

    def __init__(self, task: Any, parts: Parts, notes: tuple[str, ...] = ()):
        self.task, self.mel = task, LogMel(task.rate, task.bands)
        gap = round(task.gap / self.mel.step)
        if task.gap and not gap:
            raise ValueError(f"task.gap={task.gap} must be 0 or at least half a frame of {self.mel.step:g} s")
        self.words = known(parts)
        super().__init__((*self.words, GAP) if task.gap else self.words)
        alike = {part: hashes(each.samples for each in parts[part]) for part in PARTS}
        self._hashes = alike["train"]
        self.notes = (*notes, *absent(self.words, parts), *ambiguous(parts), *repeated(alike))
        self._gap = gap
        self._names_of = {part: [short(each) for each in parts[part]] for part in PARTS}
        self._strings = {part: self._joined(part, parts[part]) for part in PARTS}
        self._lengths = {part: each.lengths(task.speed * (part == "train")) for part, each in self._strings.items()}
        self._buckets = Buckets(self._lengths["train"], task.buckets)
        self._longest = int(max(rounded(lengths.max()) for lengths in self._lengths.values()))
        self.shape = Classes(Frames(task.bands, self._longest), len(self.classes), each=True)
        frames = np.concatenate(self._strings["train"].sounds)
        self._mean, self._spread = frames.mean(axis=0), np.maximum(frames.std(axis=0), 1e-3)
        self._known: dict[tuple[str, int | None], list[tuple[np.ndarray, Batch]]] = {}
        data = ({f"{part} {each.label}": each.samples} for part in PARTS for each in parts[part])
        self.fingerprint = fingerprint(self.mel, data)

    @property
    def first_steps(self) -> tuple[int, ...]:
        """The first step of each bucket."""
        return self._buckets.first_steps

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns strings of recordings, each varied independently, with noise.

        The loudness of the noise is drawn for each string.
        """
        rows, (width,) = self._buckets.batch(seed, step, size)
        random, task = self._random(len(PARTS), seed, step), self.task
        loudness = task.noise * 10 ** random.uniform(-2, 0, size) if task.noise else None
        return self._batch("train", rows, width, lambda x: varied(random, x, task.speed, task.shift), loudness)

    def loss(
        self, model: Classifier, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the cross-entropy in nats, the mean over frames.

        Returns:
            The loss, and {"frame_accuracy"}.
        """
        loss, metrics = super().loss(model, batch, key)
        return loss, {"frame_accuracy": metrics["accuracy"]}

    def answer(self, model: Classifier, batch: Batch) -> Batch:
        """Returns {"label": [B T], "word", "probability": [B digits]}.

        "label" is the class of each frame, and "word" that of each recording. −1 means that there is none.
        """
        import jax
        import jax.numpy as jnp

        from attnlab.tasks.speech.mean_words import mean_words

        nats = jax.nn.log_softmax(self.scores(model, batch), axis=-1)
        keep = jnp.asarray(batch["keep"])
        # A frame outside the string belongs to no recording, whatever its piece says.
        piece = jnp.where(keep, jnp.asarray(batch["piece"]), NONE)
        word, chance = jax.vmap(lambda x, at: mean_words(x, at, self.task.digits))(nats[..., : len(self.words)], piece)
        return {
            "label": jnp.where(keep, jnp.argmax(nats, axis=-1), NONE).astype(jnp.int32),
            "word": word,
            "probability": chance,
        }

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the first `limit` strings, without variation or noise.

        If there are many, they are grouped by length into at most `task.buckets` shapes.
        """
        return [batch for _, batch in self._examined(part, limit)]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"accuracy", "frame_accuracy", "exact_match", "digit_error_rate"}, or {} if a recording has no class.

        The first three are the fractions of correct words, of correct frames, and of strings with all words correct.

        The digit error rate is Σ d(answer, string) / Σ |string| in words, where the answer is the `collapse` of its
        frames. It uses no knowledge of where words are, except that the silence of a gap has no noise. Without silence
        between words, two equal neighbours cannot be told from one word, however good the frames are. A quarter of the
        strings of 4 digits have such a pair, which costs .07.
        """
        if (self._strings[part].words == NONE).any():
            return {}
        right, frames, errors = [], [], []
        for (rows, batch), answer in zip(self._examined(part, limit), answers, strict=True):
            true = self._strings[part].spoken(rows)
            right.append(np.asarray(answer["word"])[: len(rows)] == true)
            label, predicted = np.asarray(batch["label"]), np.asarray(answer["label"])
            frames.append((predicted == label)[label != NONE])
            errors += [
                distance(self._collapsed(row), self._named(words)) for row, words in zip(predicted, true, strict=False)
            ]
        whole = np.concatenate(right)
        return {
            "accuracy": float(whole.mean()),
            "frame_accuracy": float(np.concatenate(frames).mean()),
            "exact_match": float(whole.all(axis=1).mean()),
            "digit_error_rate": sum(errors) / whole.size,
        }

    def count_scored(self, part: str, limit: int | None = None) -> int | None:
        """Returns the number of words."""
        return self.task.digits * sum(len(rows) for rows, _ in self._examined(part, limit))

    def with_test(self, recordings: list[Recording], notes: tuple[str, ...], path: str) -> SpeechData:
        """Returns the data with other recordings as the test part.

        Args:
            recordings: The recordings. A label of "" means that the class is unknown.
            notes: Messages about how they were read.
            path: The folder of the recordings, for messages.

        Raises:
            DataError: If a string is longer than the model reads, or if recordings without a class would be joined to
                strings.
        """
        if self.task.digits > 1 and not all(each.label for each in recordings):
            raise DataError(
                f"{path}: recordings without classes require task.digits=1, got task.digits={self.task.digits}"
            )
        found, strings = copy(self), self._joined("test", recordings)
        names, lengths = [short(each) for each in recordings], strings.lengths()
        if (longest := int(lengths.argmax())) >= 0 and lengths[longest] > self._longest:
            which = " + ".join(names[n] for n in strings.pieces[longest])
            seconds, most = (frames * self.mel.step for frames in (lengths[longest], self._longest))
            raise DataError(f"{path}: {which} lasts {seconds:.2f} s, but the model reads at most {most:.2f} s")
        found._strings, found._lengths = self._strings | {"test": strings}, self._lengths | {"test": lengths}
        found._names_of, found._known = self._names_of | {"test": names}, {}
        found.notes = (*notes, *repeated({"train": self._hashes, path: hashes(each.samples for each in recordings)}))
        return found

    def _joined(self, part: str, recordings: list[Recording]) -> Utterances:
        """Returns recordings as strings. The strings of a part always have the same order."""
        index = {"": NONE} | {word: n for n, word in enumerate(self.words)}
        words = np.array([index[each.label] for each in recordings], np.int32)
        sounds = [self.mel(each.samples) for each in recordings]
        return Utterances(self._random(PARTS.index(part)), sounds, words, self.task.digits, self._gap)

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns each string by the names of its recordings, with its words and the predicted words.

        For strings of one word, the figure is the probability of the prediction.
        """
        strings, found = self._strings[part], {}
        for (rows, _), answer in zip(self._examined(part, limit), answers, strict=True):
            word, chance = (np.asarray(answer[name])[: len(rows)] for name in ("word", "probability"))
            for row, true, predicted, sure in zip(rows.tolist(), strings.spoken(rows), word, chance, strict=True):
                name = " + ".join(self._names_of[part][n] for n in strings.pieces[row])
                expected = " ".join(self._named(true)) if (true != NONE).all() else None
                figure = float(sure[0]) if len(predicted) == 1 else None
                found[row] = Row(name, expected, " ".join(self._named(predicted)), figure)
        return [found[row] for row in sorted(found)]

    def encode_prompt(self, text: str) -> Batch:
        """Returns a recording or string as a batch of size 1.

        Args:
            text: The path of a wav file, or the number of a string, for example "test:12" for the twelfth test string.

        Raises:
            DataError: If the text is neither, or if the recording is longer than the model reads.
        """
        if found := numbered(text, {part: len(self._strings[part].pieces) for part in PARTS[1:]}, "strings"):
            part, n = found
            return self._batch(part, np.array([n]), int(self._lengths[part][n]))
        if not text.strip():
            raise DataError(f"the input {text!r} must be the path of a wav file")
        recording = load_recording(waves.read(user_path(text)), "", text, self.task.rate, self.mel.size)
        found = self.mel(recording.samples)
        if (count := len(found)) > self._longest:
            seconds, most = (frames * self.mel.step for frames in (count, self._longest))
            raise DataError(f"{text} lasts {seconds:.2f} s, but the model reads at most {most:.2f} s")
        # In a string of several words, the positions of the words are unknown.
        none = np.full((1, count), NONE, np.int32)
        piece = np.zeros_like(none) if self.task.digits == 1 else none
        return {"source": self._normal(found)[None], "keep": np.ones((1, count), bool), "label": none, "piece": piece}

    def format_answer(self, answer: Batch) -> str:
        """Returns the predicted words.

        A single word is followed by its probability. If the positions of words are unknown, the words are the
        `collapse` of the frames.
        """
        words, (chance, *_) = np.asarray(answer["word"])[0], np.asarray(answer["probability"])[0]
        if (words == NONE).any():
            return " ".join(self._collapsed(np.asarray(answer["label"])[0])) or "nothing"
        text = " ".join(self._named(words))
        return f"{text} ({float(chance):.1%})" if len(words) == 1 else text

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the class of each frame of row 0, or the frame's number if the class is unknown."""
        label, keep = np.asarray(batch["label"])[0], np.asarray(batch["keep"])[0]
        named = [str(n) if one == NONE else self.classes[one] for n, one in enumerate(label[keep])]
        return {"source": named, "target": named}

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """Returns spectrograms with the spoken and the predicted words."""
        return {CAPTION: spectrograms(self.classes, self.mel.step, batch, answer)}

    def _collapsed(self, label: np.ndarray) -> list[str]:
        return [self.words[n] for n in collapse(label.tolist(), len(self.words)) if 0 <= n < len(self.words)]

    def _named(self, words: np.ndarray) -> list[str]:
        return [self.words[n] for n in words]

    def _random(self, *more: int) -> np.random.Generator:
        return generator(self.task.seed, *more)

    def _normal(self, frames: np.ndarray) -> np.ndarray:
        return ((frames - self._mean) / self._spread).astype(np.float32)

    def _examined(self, part: str, limit: int | None) -> list[tuple[np.ndarray, Batch]]:
        """Returns, for each evaluation batch, the indices of its strings and the batch.

        The last batch of a width is filled up with silence.
        """
        check_part(part, limit)
        if (part, limit) in self._known:
            return self._known[part, limit]
        lengths, found = self._lengths[part][:limit], self._known.setdefault((part, limit), [])
        buckets = Buckets(lengths, self.task.buckets if len(lengths) > EXAMINED else 1)
        for rows, (width,) in zip(buckets.rows, buckets.widths, strict=True):
            batches = equal_batches(self._batch(part, rows, width), EXAMINED, label=NONE, piece=NONE)
            size = len(batches[0]["label"])
            found += [(rows[n * size : (n + 1) * size], batch) for n, batch in enumerate(batches)]
        return found

    def _batch(self, part: str, rows: np.ndarray, width: int, vary=lambda x: x, loudness=None) -> Batch:
        """Returns the strings of those rows, with noise of the given loudness [B] if any."""
        frames, keep, piece, label = self._strings[part].batch(rows, width, SILENCE, vary)
        if self.task.gap:
            label = np.where(keep & (label == NONE), len(self.words), label)
        source = self._normal(frames if loudness is None else noisy(frames, loudness[:, None, None]))
        source = np.where(keep[..., None], source, 0)
        return {"source": source, "keep": keep, "label": label.astype(np.int32), "piece": piece}
