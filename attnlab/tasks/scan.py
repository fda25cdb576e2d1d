"""Commands of a simplified language, and the actions that they mean."""

from dataclasses import dataclass
from typing import Any

from attnlab.data import names, repeats, scan
from attnlab.data.names import PARTS
from attnlab.data.units import Words
from attnlab.tasks import checks
from attnlab.tasks.metrics import exact_match
from attnlab.tasks.pairing import PairTask, halves, left_out
from attnlab.tasks.transduction import Transduction


@dataclass(frozen=True)
class Scan(PairTask):
    """ "jump twice" → "I_JUMP I_JUMP" (Lake and Baroni 2018); scored by exact match.

    `split` is one of simple, length (longer actions are examined than were taught), addprim_jump and
    addprim_turn_left (a word known by itself is examined in new sentences). A tenth of what is published for training
    is kept to validate with. `train`, `valid` and `test` name files of your own to take the place of these parts:
    lines as in SCAN's files, or a command, a tab and its actions. Where all three are given, `split` is not read.
    `buckets`: into how many lengths batches are sorted.
    """

    teaching = (*PairTask.teaching, "buckets")

    split: str = "simple"
    buckets: int = 4
    train: str = ""
    valid: str = ""
    test: str = ""

    def __post_init__(self):
        super().__post_init__()
        if not self.unread:
            names.check("task.split", self.split, scan.SPLITS)
        checks.buckets(self)

    @property
    def unread(self) -> dict[str, Any]:
        """The split, where all files are your own."""
        return {"split": ""} if self.train and self.valid and self.test else {}

    def load(self) -> Transduction:
        """Read the split, fetched where it is not at hand, or your own files."""
        given = {part: path for part in PARTS if (path := getattr(self, part))}
        repeats.distinct(given)
        # Nothing is fetched for a user who brings all three.
        parts = {} if self.unread else scan.parts(self.split)
        half = {path: halves(self.empty) for path in given.values()}
        parts = parts | {part: scan.own(path, half[path]) for part, path in given.items()}
        found = Transduction(parts, (Words(), Words()), exact_match, "exact_match", True, self.buckets, **self.how)
        found.notes = (*left_out(half), *found.notes)
        return found
