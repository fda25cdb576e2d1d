"""Sequences of integers to be reversed or copied."""

from dataclasses import dataclass

from attnlab.data import names
from attnlab.data.synthetic import reverse
from attnlab.data.text.units import Words
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import BLEU, EXACT_MATCH, bleu, exact_match
from attnlab.tasks.base.parts import sizes
from attnlab.tasks.text.pair_task import PairTask
from attnlab.tasks.text.transduction import PairData

METRICS = {"exact_match": EXACT_MATCH, "bleu": BLEU}


@dataclass(frozen=True)
class Reverse(PairTask):
    """Integers reversed: "3 1 4" → "4 1 3". Scored by exact match and BLEU.

    Lengths are uniform. Evaluation sequences may be a little longer than any training sequence. The defaults are those
    of the JoeyNMT tutorial (Kreutzer et al. 2019). Examples are drawn independently, so that the shortest sequences
    occur in every part.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets")
    fixed_units = (Words(), Words())

    train_examples: int = 40_000
    """The number of training examples."""
    valid_examples: int = 1_000
    """The number of validation examples."""
    test_examples: int = 1_000
    """The number of test examples."""
    symbols: int = 50
    """The number of different integers. Integers are below it."""
    train_longest: int = 25
    """The largest length of a training sequence. The smallest is 1."""
    longest: int = 30
    """The largest length of a validation or test sequence. The smallest is 1."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""
    buckets: int = 3
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""
    metric: str = "exact_match"
    """The primary metric, "exact_match" or "bleu"."""

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
        """Whether the answer is the reversed sequence."""
        return True

    def load(self) -> PairData:
        """Generates the sequences."""
        longest = {"train": self.train_longest, "valid": self.longest, "test": self.longest}
        parts = reverse.read(self.seed, sizes(self), longest, self.symbols, self.backwards)
        measure = lambda answers, references: exact_match(answers, references) | bleu(answers, references)
        metrics = sorted(METRICS.values(), key=lambda metric: metric.name != self.metric)
        return PairData(parts, self.fixed_units, measure, tuple(metrics), self.buckets, **self.how)


@dataclass(frozen=True)
class Copy(Reverse):
    """Integers copied: "3 1 4" → "3 1 4". Scored by exact match and BLEU. The fields are those of `reverse`."""

    @property
    def backwards(self) -> bool:
        """Whether the answer is the reversed sequence. It is the sequence itself."""
        return False
