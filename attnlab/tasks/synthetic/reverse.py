"""A sequence of integers, backwards or as it stands."""

from dataclasses import dataclass

from attnlab.data import names
from attnlab.data.names import PARTS
from attnlab.data.synthetic import reverse
from attnlab.data.text.units import Words
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import bleu, exact_match
from attnlab.tasks.text.pairing import PairTask
from attnlab.tasks.text.transduction import PairData

METRICS = ("exact_match", "bleu")


@dataclass(frozen=True)
class Reverse(PairTask):
    """Integers backwards: "3 1 4" → "4 1 3"; scored by exact match and BLEU, of which `metric` is the headline.

    Integers below `symbols`; lengths uniform in 1 … `train_longest` in training and 1 … `longest` in the
    examinations, which so ask for a little more than was taught. The defaults are those of the JoeyNMT
    tutorial (Kreutzer et al. 2019). Independent draws: the shortest sequences occur in every part.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets")

    train_examples: int = 40_000
    valid_examples: int = 1_000
    test_examples: int = 1_000
    symbols: int = 50
    train_longest: int = 25
    longest: int = 30
    seed: int = 0
    buckets: int = 3
    metric: str = "exact_match"

    def __post_init__(self):
        super().__post_init__()
        checks.examples(self, ["train", "valid", "test"])
        checks.counts(self, ["symbols"])
        checks.counts(self, ["train_longest", "longest"], most=65_536)
        checks.seed(self)
        checks.buckets(self)
        names.check("task.metric", self.metric, METRICS)

    @property
    def backwards(self) -> bool:
        """Whether the answer is the sequence from its end."""
        return True

    def load(self) -> PairData:
        """Draw the sequences."""
        sizes = {part: getattr(self, f"{part}_examples") for part in PARTS}
        longest = {"train": self.train_longest, "valid": self.longest, "test": self.longest}
        parts = reverse.read(self.seed, sizes, longest, self.symbols, self.backwards)
        measure = lambda answers, references: exact_match(answers, references) | bleu(answers, references)
        units = (Words(), Words())
        return PairData(parts, units, measure, self.metric, True, self.buckets, **self.how)


@dataclass(frozen=True)
class Copy(Reverse):
    """Integers as they stand: "3 1 4" → "3 1 4"; the rest as in `reverse`."""

    @property
    def backwards(self) -> bool:
        """The answer is the sequence itself."""
        return False
