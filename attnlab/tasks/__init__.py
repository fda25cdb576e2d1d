"""What a model is asked to do: data, batches, the loss, the metrics. Importing it imports no jax."""

from attnlab.tasks.associations import Associations
from attnlab.tasks.base import Classes, Frames, Image, Pairs, Problem, Task, Tokens
from attnlab.tasks.dates import Dates
from attnlab.tasks.filtering import Convolution, Filtered
from attnlab.tasks.g2p import CMUdict, Sigmorphon
from attnlab.tasks.induction import Induction
from attnlab.tasks.recall import Recall
from attnlab.tasks.reverse import Copy, Reverse
from attnlab.tasks.scan import Scan
from attnlab.tasks.text import Shakespeare, Text
from attnlab.tasks.translation import Multi30k, Parallel

__all__ = [
    "TASKS", "Associations", "CMUdict", "Classes", "Convolution", "Copy", "Dates", "Filtered", "Frames", "Image",
    "Induction", "Multi30k", "Pairs", "Parallel", "Problem", "Recall", "Reverse", "Scan", "Shakespeare", "Sigmorphon",
    "Task", "Text", "Tokens",
]  # fmt: skip

TASKS: dict[str, Task] = {
    "dates": Dates(),
    "reverse": Reverse(),
    "copy": Copy(),
    "cmudict": CMUdict(),
    "sigmorphon": Sigmorphon(),
    "scan": Scan(),
    "multi30k": Multi30k(),
    "parallel": Parallel(),
    "shakespeare": Shakespeare(),
    "text": Text(),
    "associations": Associations(),
    "recall": Recall(),
    "induction": Induction(),
    "convolution": Convolution(),
}
