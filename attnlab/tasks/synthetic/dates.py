"""Dates as people write them, to ISO 8601: characters to characters, in forty languages."""

from dataclasses import dataclass
from typing import Any

from attnlab.data import names
from attnlab.data.names import PARTS
from attnlab.data.synthetic import dates
from attnlab.data.synthetic.dates import LANGUAGES
from attnlab.data.text.units import Characters
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import exact_match
from attnlab.tasks.text.pairing import PairTask
from attnlab.tasks.text.transduction import PairData


@dataclass(frozen=True)
class Dates(PairTask):
    """Dates in ISO 8601: "5 de março de 2024" → "2024-03-05"; scored by exact match, for each language too.

    Days are those of 1900 to 2099; one in ten is examined (and one in ten validated) and never seen in
    training in any language. The sizes are shared out evenly over the `languages`; what is drawn is a
    function of `seed`. `buckets`: into how many lengths batches are sorted.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets")

    languages: tuple[str, ...] = LANGUAGES
    train_examples: int = 24_000
    valid_examples: int = 1_000
    test_examples: int = 2_000
    seed: int = 0
    buckets: int = 3

    def __post_init__(self):
        super().__post_init__()
        checks.examples(self, ["train", "valid", "test"])
        checks.seed(self)
        checks.buckets(self)
        if isinstance(self.languages, str) or not self.languages or len(set(self.languages)) < len(self.languages):
            raise ValueError(f"task.languages={self.languages!r} must list different languages, at least one")
        for language in self.languages:
            names.check("task.languages", language, LANGUAGES)

    @property
    def how(self) -> dict[str, Any]:
        """Inputs are read as the days were written."""
        return super().how | {"read": dates.plain}

    def load(self) -> PairData:
        """Write the days out."""
        sizes = {part: getattr(self, f"{part}_examples") for part in PARTS}
        parts = dates.read(self.seed, sizes, self.languages)
        units = (Characters(), Characters())
        return PairData(parts, units, exact_match, "exact_match", True, self.buckets, **self.how)
