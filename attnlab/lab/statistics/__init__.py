"""Statistics for a few seeds: intervals, verdicts, multiplicity, power, and the choice of a learning rate."""

from attnlab.lab.statistics.intervals import Summary, difference, interval, summaries, summary
from attnlab.lab.statistics.learning_rates import Choice, choose, leaders, lowest
from attnlab.lab.statistics.multiplicity import holm, verdicts
from attnlab.lab.statistics.power import POWER, minimum_detectable_difference, power, required_seeds
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
    "minimum_detectable_difference",
    "power",
    "required_seeds",
    "summaries",
    "summary",
    "tied",
    "verdicts",
]
