"""Statistics for a few seeds: intervals, verdicts, multiplicity, power, and the choice of a learning rate."""

from attnlab.lab.statistics.intervals import Summary, difference, interval, summaries, summary
from attnlab.lab.statistics.learning_rates import Choice, choose, leaders, lowest
from attnlab.lab.statistics.multiplicity import holm, verdicts
from attnlab.lab.statistics.power import POWER, needed, power, smallest
from attnlab.lab.statistics.samples import tied
from attnlab.lab.statistics.verdict import Verdict, Word, compare

__all__ = [
    "POWER",
    "Choice",
    "Summary",
    "Verdict",
    "Word",
    "choose",
    "compare",
    "difference",
    "holm",
    "interval",
    "leaders",
    "lowest",
    "needed",
    "power",
    "smallest",
    "summaries",
    "summary",
    "tied",
    "verdicts",
]
