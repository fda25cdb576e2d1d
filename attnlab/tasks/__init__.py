"""What a model is asked to do: data, batches, the loss, the metrics. Importing it imports no jax."""

from attnlab.tasks.associations import Associations
from attnlab.tasks.base import Pairs, Problem, Task, Tokens
from attnlab.tasks.dates import Dates
from attnlab.tasks.g2p import CMUdict, Sigmorphon
from attnlab.tasks.recall import Recall
from attnlab.tasks.reverse import Reverse

__all__ = [
    "TASKS", "Associations", "CMUdict", "Dates", "Pairs", "Problem", "Recall", "Reverse", "Sigmorphon", "Task", "Tokens"
]  # fmt: skip

TASKS: dict[str, Task] = {
    "dates": Dates(),
    "reverse": Reverse(),
    "cmudict": CMUdict(),
    "sigmorphon": Sigmorphon(),
    "associations": Associations(),
    "recall": Recall(),
}
