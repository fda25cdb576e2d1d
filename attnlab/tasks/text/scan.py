"""SCAN: commands of a simplified language, and the actions that they mean."""

from dataclasses import dataclass

from attnlab.data import names
from attnlab.data.text import scan
from attnlab.data.text.example import Example
from attnlab.data.text.units import Words
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import EXACT_MATCH, exact_match
from attnlab.tasks.text.pair_task import PairTask, halves, left_out, user_parts
from attnlab.tasks.text.transduction import PairData


@dataclass(frozen=True)
class Scan(PairTask):
    """ "jump twice" → "I_JUMP I_JUMP" (Lake and Baroni 2018). Scored by exact match.

    A tenth of the published training part is used for validation.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets")
    fixed_units = (Words(), Words())

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
    def unread(self) -> dict[str, object]:
        """The split, if all files are your own."""
        return {"split": ""} if self.train and self.valid and self.test else {}

    def read_for_scoring(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """Returns the examples of a file in SCAN's form, or of a file of pairs or of sources only."""
        if not scan.is_marked(file):
            return super().read_for_scoring(file)
        half = halves(self.empty)
        examples = scan.read_for_scoring(file, half)
        return examples, [repr(str(example.source)) for example in examples], left_out({file: half})

    def load(self) -> PairData:
        """Reads the split, which is downloaded if it is not available locally, or your own files."""
        parts, notes = user_parts(self, lambda: scan.parts(self.split), scan.read_user_file)
        found = PairData(parts, self.fixed_units, exact_match, (EXACT_MATCH,), self.buckets, **self.how)
        found.notes = (*notes, *found.notes)
        return found
