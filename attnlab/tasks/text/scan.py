"""SCAN: commands of a simplified language, and the actions that they mean."""

from dataclasses import dataclass
from typing import Any

from attnlab.data import names, repeats
from attnlab.data.names import PARTS
from attnlab.data.text import scan
from attnlab.data.text.units import Words
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import EXACT_MATCH, exact_match
from attnlab.tasks.text.pairing import PairTask, halves, left_out
from attnlab.tasks.text.transduction import PairData


@dataclass(frozen=True)
class Scan(PairTask):
    """ "jump twice" → "I_JUMP I_JUMP" (Lake and Baroni 2018). Scored by exact match.

    A tenth of the published training part is used for validation.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets")

    split: str = "simple"
    """The split: "simple", "length", "addprim_jump" or "addprim_turn_left".

    "length" tests actions that are longer than in training. The "addprim" splits test a word in new sentences that
    training shows in isolation only. The field is not read if all three parts are your own files.
    """
    buckets: int = 4
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""
    train: str = ""
    """The path of your own training file. "" uses the published part.

    Lines are as in SCAN's files, or a command, a tab and its actions.
    """
    valid: str = ""
    """The path of your own validation file. "" uses the published part."""
    test: str = ""
    """The path of your own test file. "" uses the published part."""

    def __post_init__(self):
        super().__post_init__()
        if not self.unread:
            names.check("task.split", self.split, scan.SPLITS)
        checks.buckets(self)

    @property
    def unread(self) -> dict[str, Any]:
        """The split, if all files are your own."""
        return {"split": ""} if self.train and self.valid and self.test else {}

    def load(self) -> PairData:
        """Read the split, which is downloaded if it is not available locally, or your own files."""
        given = {part: path for part in PARTS if (path := getattr(self, part))}
        repeats.distinct(given)
        # Nothing is downloaded if all three parts are your own files.
        parts = {} if self.unread else scan.parts(self.split)
        half = {path: halves(self.empty) for path in given.values()}
        parts = parts | {part: scan.read_user_file(path, half[path]) for part, path in given.items()}
        found = PairData(parts, (Words(), Words()), exact_match, (EXACT_MATCH,), self.buckets, **self.how)
        found.notes = (*left_out(half), *found.notes)
        return found
