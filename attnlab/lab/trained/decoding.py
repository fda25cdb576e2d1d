"""Options of decoding, and the decoding of sources with a trained model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np

from attnlab.data.text.vocabulary import END
from attnlab.decoding import Beam, Greedy, Sample, Search
from attnlab.documented import Documented
from attnlab.lab.trained.load import Trained
from attnlab.tasks.base.text_interface import TextInterface, is_continued, is_decoded, one_line

BEAM, DRAWS = ("beam", "penalty"), ("temperature", "top_k", "top_p")


class DivergedError(ArithmeticError):
    """The model returned numbers that are not finite, so no answer can be called the best."""

    exit_code = 5


@dataclass(frozen=True)
class DecodingOptions(metaclass=Documented):
    """How to decode, as given by the options of the command line. None stands for an option that was not given.

    `beam` and `penalty` request a beam search. `temperature`, `top_k` and `top_p` request sampling. If none of the
    options is given, the run's own decoder is used. An option that is not given is taken from the run's own decoder if
    that is of the same kind, otherwise from the defaults of `Beam` or `Sample`.

    Raises:
        ValueError: The options request both kinds, have impossible values, or would have no effect. The message names
            the options.
    """

    beam: int | None = None
    """The size of the beam."""
    penalty: float | None = None
    """The exponent of the length penalty of the beam search."""
    best: int | None = None
    """How many answers to return.

    A number above 1 without options of either kind requests a beam of at least that size. If the run's own decoder
    samples, it requests that many samples instead.
    """
    temperature: float | None = None
    """The temperature of sampling."""
    top_k: int | None = None
    """Sample from only this many most probable tokens."""
    top_p: float | None = None
    """Sample from only the most probable tokens that together have this probability."""
    seed: int | None = None
    """The seed of sampling, in 0 … 2^32 − 1. 0 is used if it is not given."""
    length: int | None = None
    """How many symbols to continue a text by. By default, as many as fit into one block of the model."""

    def __post_init__(self):
        beam, draws = self._as_typed(*BEAM), self._as_typed(*DRAWS)
        if beam and draws:
            raise ValueError(f"{beam[0]} (beam search) and {draws[0]} (sampling) cannot be combined")
        if self.seed is not None and beam:
            raise ValueError(f"--seed {self.seed} applies only to sampling and cannot be combined with {beam[0]}")
        if self.seed is not None and not 0 <= self.seed < 2**32:
            raise ValueError(f"--seed {self.seed} must lie in 0 … {2**32 - 1}")
        if self.best is not None and self.best < 1:
            raise ValueError(f"--best {self.best} must be at least 1")
        if self.length is not None and self.length < 1:
            raise ValueError(f"--length {self.length} must be at least 1")
        if self.length is not None and self.best is not None and self.best > 1:
            raise ValueError(
                f"--length {self.length} returns one continuation and cannot be combined with --best {self.best}"
            )
        if self.beam is not None and self.best is not None and self.best > self.beam:
            raise ValueError(f"--best {self.best} must be at most --beam {self.beam}")
        try:
            self._decoder(None)
        except ValueError as refusal:
            raise ValueError(f"{' '.join(self.given_options)}: {refusal}") from refusal

    @property
    def given_options(self) -> list[str]:
        """The options that were given, as they are typed on the command line."""
        return self._as_typed(*vars(self))

    def decoder(self, own: Search | None) -> Search:
        """Return the requested decoder.

        Args:
            own: The run's own decoder. None means greedy decoding.

        Raises:
            ValueError: A seed was given and the decoder does not sample.
        """
        found = self._decoder(own)
        if self.seed is not None and not isinstance(found, Sample):
            raise ValueError(
                f"--seed {self.seed} has no effect without sampling; add --temperature, --top-k or --top-p"
            )
        return found

    def _decoder(self, own: Search | None) -> Search:
        """Return the requested decoder without checking the seed."""
        drawn = isinstance(own, Sample) and not self._as_typed(*BEAM)
        if drawn or self._as_typed(*DRAWS):
            given = {name: getattr(self, name) for name in (*DRAWS, "best") if getattr(self, name) is not None}
            return replace(own if isinstance(own, Sample) else Sample(), **given)
        beam = own if isinstance(own, Beam) else Beam()
        several = self.best is not None and (self.best > 1 or isinstance(own, Beam))
        if not self._as_typed(*BEAM) and not several:
            return own or Greedy()
        best = self.best or min(beam.best, beam.size if self.beam is None else self.beam)
        return replace(
            beam,
            size=max(beam.size, best) if self.beam is None else self.beam,
            penalty=beam.penalty if self.penalty is None else self.penalty,
            # With an impossible `beam`, the error should name the size and not `best`.
            best=max(best, 1),
        )

    def check(self, problem: TextInterface) -> None:
        """Check that the options apply to a problem.

        Raises:
            ValueError: An option was given and the problem is not decoded symbol by symbol, or `length` was given and
                the problem does not continue a text.
        """
        if self.given_options and not is_decoded(problem):
            raise ValueError(
                f"{self.given_options[0]} has no effect: this task is not decoded symbol by symbol; remove the option"
            )
        if self.length is not None and not problem.continues:
            raise ValueError(f"--length {self.length} applies only to tasks that continue a text; remove the option")

    def _as_typed(self, *names: str) -> list[str]:
        """Return those of the named options that were given, as typed."""
        given = {name: getattr(self, name) for name in names}
        return [f"--{name.replace('_', '-')} {value}" for name, value in given.items() if value is not None]


class Answer(NamedTuple):
    """One decoded answer."""

    text: str
    """The answer as one line of text. A continued text keeps its own line breaks."""
    score: float
    """The score of the answer, as in `SearchResult`."""
    finished: bool
    """Whether the answer contains the end symbol."""
    tokens: np.ndarray
    """The tokens of the answer, `[T]`."""


class Answerer:
    """A trained model that decodes batches of sources. One program is compiled for each shape.

    Line n samples with its own key, so the other lines of its batch have no effect on its answer.

    Args:
        found: The loaded run. Its problem must be decoded symbol by symbol.
        options: How to decode. By default the run's own decoder is used.
    """

    def __init__(self, found: Trained, options: DecodingOptions = DecodingOptions()):
        if not is_decoded(found.problem):
            raise ValueError(f"{type(found.problem).__name__} is not decoded symbol by symbol")
        self.problem = found.problem
        own = found.experiment.decoder or self.problem.decoder
        self.decoder, self._model = options.decoder(own), found.model
        seed = jax.random.key(options.seed or 0)
        self._keys = jax.jit(jax.vmap(lambda number: jax.random.fold_in(seed, number)))
        self._answers = jax.jit(self.problem.answers, static_argnames="decoder")

    def __call__(self, sources: np.ndarray, numbers: np.ndarray) -> list[list[Answer]]:
        """Decode a batch of sources.

        Args:
            sources: The token ids, `[B S]`.
            numbers: The number of each line, `[B]`. Each line samples with the key of its number.

        Returns:
            For each source its answers, the best first. There is at least one. There are fewer than requested if the
            beam found fewer.
        """
        keys = self._keys(np.asarray(numbers, np.uint32))
        batch = {"source": np.asarray(sources, np.int32)}
        found = self._answers(self._model, batch, decoder=self.decoder, keys=keys)
        rows = zip(*(np.asarray(found[name]) for name in ("tokens", "scores")), strict=True)
        answers = [[self._answer(*one) for one in zip(*row, strict=True)] for row in rows]
        return [row[:1] + [answer for answer in row[1:] if answer.score > -np.inf] for row in answers]

    def on(self, source: np.ndarray, length: int) -> Answer:
        """Continue a text by `length` symbols, block after block.

        Each block starts from the end of the text so far, as many symbols as the problem reads. The score is the sum
        over all blocks. The last block counts as a whole, even if `length` cuts it.

        Args:
            source: The token ids of the text, `[P]`.
            length: How many symbols to add.
        """
        if not is_continued(self.problem):
            raise ValueError(f"{type(self.problem).__name__} does not continue a text")
        text, score = np.asarray(source, np.int32), 0.0
        while (written := len(text) - len(source)) < length:
            block = self(text[None, -self.problem.reads :], np.array([1 + written]))[0][0]
            text, score = np.concatenate([text, block.tokens]), score + block.score
        return self._answer(text[len(source) :][:length], np.float64(score))

    def _answer(self, tokens: np.ndarray, score: np.floating) -> Answer:
        text = self.problem.format_answer({"tokens": tokens[None]})
        # A continuation of a text keeps its line breaks.
        text = text if self.problem.continues else one_line(text)
        return Answer(text, float(score), bool((tokens == END).any()), tokens)
