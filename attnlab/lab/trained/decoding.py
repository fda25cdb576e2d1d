"""The decoder that a person asks for, and the answers it finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from attnlab.data.text.vocabulary import END
from attnlab.decoding import Beam, Greedy, Sample, Search
from attnlab.lab.trained.load import Trained
from attnlab.tasks.base.task import TaskData

BEAM, DRAWS = ("beam", "penalty"), ("temperature", "top_k", "top_p")


class DivergedError(ArithmeticError):
    """A model that answered what is no number: which answer is best is unknown."""

    exit_code = 5


@dataclass(frozen=True)
class DecodingOptions:
    """How answers are to be decoded, as the options of the command line say; None is what was not said.

    `beam` (its size) and `penalty` ask for a beam; `temperature`, `top_k` and `top_p` for draws, which `seed` fixes
    (0). `best` is how many answers; more than one, with none of the others, are those of a beam wide enough, or of a
    run that answers by draws as many of these. What is not said is as in the run's own, where that is of the kind, else
    as in `Beam` or `Sample`. Where nothing is said the run's own decoder answers. `length` is by how many symbols a
    text is gone on with: what fits into one block of the model where it is not said.

    Raises ValueError naming the options where they ask for both kinds, for what cannot work, or for what would not
    be looked at.
    """

    beam: int | None = None
    penalty: float | None = None
    best: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    length: int | None = None

    def __post_init__(self):
        beam, draws = self._said(*BEAM), self._said(*DRAWS)
        if beam and draws:
            raise ValueError(f"{beam[0]} asks for a beam and {draws[0]} for draws: give one of them")
        if self.seed is not None and beam:
            raise ValueError(f"--seed {self.seed} is for draws, and {beam[0]} asks for a beam")
        if self.seed is not None and not 0 <= self.seed < 2**32:
            raise ValueError(f"--seed {self.seed} must lie in 0 … {2**32 - 1}")
        if self.best is not None and self.best < 1:
            raise ValueError(f"--best {self.best} must be at least 1")
        if self.length is not None and self.length < 1:
            raise ValueError(f"--length {self.length} must be at least 1")
        if self.length is not None and self.best is not None and self.best > 1:
            raise ValueError(f"--length {self.length} goes on with one text, and --best {self.best} asks for more")
        if self.beam is not None and self.best is not None and self.best > self.beam:
            raise ValueError(f"--best {self.best} must be at most --beam {self.beam}")
        try:
            self._decoder(None)
        except ValueError as refusal:
            raise ValueError(f"{' '.join(self.said)}: {refusal}") from refusal

    @property
    def said(self) -> list[str]:
        """The options that were given, as they were typed."""
        return self._said(*vars(self))

    def decoder(self, own: Search | None) -> Search:
        """The decoder asked for, of a run whose own is `own` (None: greedy).

        Raises ValueError for a seed where nothing is drawn.
        """
        found = self._decoder(own)
        if self.seed is not None and not isinstance(found, Sample):
            raise ValueError(
                f"--seed {self.seed} is for draws, and there are none: give --temperature, --top-k or --top-p"
            )
        return found

    def _decoder(self, own: Search | None) -> Search:
        drawn = isinstance(own, Sample) and not self._said(*BEAM)
        if drawn or self._said(*DRAWS):
            said = {name: getattr(self, name) for name in (*DRAWS, "best") if getattr(self, name) is not None}
            return replace(own if isinstance(own, Sample) else Sample(), **said)
        beam = own if isinstance(own, Beam) else Beam()
        several = self.best is not None and (self.best > 1 or isinstance(own, Beam))
        if not self._said(*BEAM) and not several:
            return own or Greedy()
        best = self.best or min(beam.best, beam.size if self.beam is None else self.beam)
        return replace(
            beam,
            size=max(beam.size, best) if self.beam is None else self.beam,
            penalty=beam.penalty if self.penalty is None else self.penalty,
            # Of a beam that cannot be, its size is what is wrong.
            best=max(best, 1),
        )

    def check(self, problem: TaskData) -> None:
        """Raise ValueError where something was asked for and the problem is not answered so."""
        if self.said and not (problem.decodes or problem.continues):
            raise ValueError(f"{self.said[0]}: what this task asks is not answered symbol by symbol; leave it out")
        if self.length is not None and not problem.continues:
            raise ValueError(f"--length {self.length}: an answer has an end of its own here; leave it out")

    def _said(self, *names: str) -> list[str]:
        given = {name: getattr(self, name) for name in names}
        return [f"--{name.replace('_', '-')} {value}" for name, value in given.items() if value is not None]


class Answer(NamedTuple):
    """An answer as one line of text, its score (of `Decoded`), whether it came to its end, and its tokens [T]."""

    text: str
    score: float
    finished: bool
    tokens: np.ndarray


class Answerer:
    """A trained model that answers batches of sources in the way asked for. One program for each shape.

    Line n of what is asked draws by its own key: which lines share its batch does not matter.
    The problem must be one that is answered symbol by symbol.
    """

    def __init__(self, found: Trained, asked: DecodingOptions = DecodingOptions()):
        self.problem: Any = found.problem
        own = found.experiment.decoder or self.problem.decoder
        self.decoder, self._model = asked.decoder(own), found.model
        seed = asked.seed or 0

        def answers(model, sources, numbers):
            def one(source, number):
                key = jax.random.fold_in(jax.random.key(seed), number)
                return self.problem.answers(model, {"source": source[None]}, self.decoder, key)

            return jax.vmap(one)(sources, numbers)

        self._answers = jax.jit(answers)

    def __call__(self, sources: np.ndarray, numbers: np.ndarray) -> list[list[Answer]]:
        """The answers, the best first, to each of `sources` [B S], the lines `numbers` [B] of what is asked.

        One at least; where a beam found fewer than were asked for, fewer.
        """
        found = self._answers(self._model, np.asarray(sources, np.int32), np.asarray(numbers, np.uint32))
        rows = zip(*(np.asarray(found[name])[:, 0] for name in ("tokens", "scores")), strict=True)
        told = [[self._told(*one) for one in zip(*row, strict=True)] for row in rows]
        return [row[:1] + [answer for answer in row[1:] if answer.score > -np.inf] for row in told]

    def on(self, source: np.ndarray, length: int) -> Answer:
        """A text [P] gone on with by so many symbols, block after block, each begun with the end of what is there.

        As much of it as the problem reads of a beginning. The score is that of all blocks, the last one whole.
        """
        text, score = np.asarray(source, np.int32), 0.0
        while (written := len(text) - len(source)) < length:
            block = self(text[None, -self.problem.reads :], np.array([1 + written]))[0][0]
            text, score = np.concatenate([text, block.tokens]), score + block.score
        return self._told(text[len(source) :][:length], np.float64(score))

    def _told(self, tokens: np.ndarray, score: np.floating) -> Answer:
        text = self.problem.format_answer({"tokens": tokens[None]})
        # A text that is gone on with has lines of its own.
        text = text if self.problem.continues else one_line(text)
        return Answer(text, float(score), bool((tokens == END).any()), tokens)


def one_line(text: str) -> str:
    r"""The text with a space for each end of a line in it, as byte vocabularies can spell.

    >>> one_line("a\r\nb\nc")
    'a b c'
    """
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
