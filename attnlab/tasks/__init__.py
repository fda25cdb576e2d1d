"""What a model is asked to do: data, batches, the loss, the metrics. Importing it imports no jax."""

from attnlab.tasks.base import Pairs, Problem, Task
from attnlab.tasks.dates import Dates
from attnlab.tasks.g2p import CMUdict, Sigmorphon
from attnlab.tasks.reverse import Reverse

__all__ = ["TASKS", "CMUdict", "Dates", "Pairs", "Problem", "Reverse", "Sigmorphon", "Task"]

TASKS: dict[str, Task] = {
    "dates": Dates(),
    "reverse": Reverse(),
    "cmudict": CMUdict(),
    "sigmorphon": Sigmorphon(),
}
