"""The dates task: dates as people write them, to ISO 8601, from characters to characters, in forty languages."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.data import names
from attnlab.data.synthetic import dates
from attnlab.data.synthetic.dates import LANGUAGES
from attnlab.data.text.units import Characters
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import EXACT_MATCH, exact_match
from attnlab.tasks.base.parts import sizes
from attnlab.tasks.text.pair_task import PairTask
from attnlab.tasks.text.pairing import PairOptions
from attnlab.tasks.text.transduction import PairData


@dataclass(frozen=True)
class Dates(PairTask):
    """Dates in ISO 8601: "5 de março de 2024" → "2024-03-05". Scored by exact match, also for each language.

    The days are those of 1900 to 2099. One day in ten is used for the test and one in ten for validation. These days
    never occur in training, in any language.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets")
    fixed_units = (Characters(), Characters())

    languages: tuple[str, ...] = LANGUAGES
    """The languages, all different. The examples of each part are divided evenly among them."""
    train_examples: int = 24_000
    """The number of training examples."""
    valid_examples: int = 1_000
    """The number of validation examples."""
    test_examples: int = 2_000
    """The number of test examples."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""
    buckets: int = 3
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""

    def __post_init__(self):
        super().__post_init__()
        checks.examples(self, ["train", "valid", "test"])
        checks.seed(self)
        checks.buckets(self)
        listed = isinstance(self.languages, Sequence) and not isinstance(self.languages, str) and self.languages
        if not listed or len(set(self.languages)) < len(self.languages):
            raise ValueError(f"task.languages={self.languages!r} must list at least one language, each only once")
        for language in self.languages:
            names.check("task.languages", language, LANGUAGES)

    @property
    def how(self) -> PairOptions:
        """Inputs are normalised in the same way as the generated dates."""
        return {**super().how, "read": dates.plain}

    def load(self) -> PairData:
        """Generates the dates."""
        parts = dates.read(self.seed, sizes(self), self.languages)
        return PairData(parts, self.fixed_units, exact_match, (EXACT_MATCH,), self.buckets, **self.how)
