"""Commands of a simplified language, and the actions that they mean."""

from dataclasses import dataclass

from attnlab.data import names, scan
from attnlab.data.units import Words
from attnlab.tasks import checks
from attnlab.tasks.metrics import exact_match
from attnlab.tasks.pairing import PairTask
from attnlab.tasks.transduction import Transduction


@dataclass(frozen=True)
class Scan(PairTask):
    """ "jump twice" → "I_JUMP I_JUMP" (Lake and Baroni 2018); scored by exact match.

    `split` is one of simple, length (longer actions are examined than were taught), addprim_jump and
    addprim_turn_left (a word known by itself is examined in new sentences). A tenth of what is published for training
    is kept to validate with. `buckets`: into how many lengths batches are sorted.
    """

    teaching = ("buckets",)

    split: str = "simple"
    buckets: int = 4

    def __post_init__(self):
        names.check("task.split", self.split, scan.SPLITS)
        checks.buckets(self)

    def load(self) -> Transduction:
        """Read the split, fetched where it is not at hand."""
        parts = scan.parts(self.split)
        return Transduction(parts, (Words(), Words()), exact_match, "exact_match", True, self.buckets)
