"""The laboratory: experiments and studies, run folders, statistics, reports.

`run`, `load`, `Study`, `Experiment`, `Train`, `over`, `product`, `zipped`, `chain`, `matched` and `RunFolder` are
imported on first use.
"""

_HOMES = {
    "run": "attnlab.lab.runs",
    "Results": "attnlab.lab.runs",
    "load": "attnlab.lab.loading",
    "Study": "attnlab.lab.study",
    "Experiment": "attnlab.lab.study",
    "Train": "attnlab.training.config",
    "over": "attnlab.lab.study",
    "product": "attnlab.lab.study",
    "zipped": "attnlab.lab.study",
    "chain": "attnlab.lab.study",
    "matched": "attnlab.lab.matching",
    "RunFolder": "attnlab.lab.folder",
}


def __getattr__(name: str):
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    try:
        return import_module(f"attnlab.lab.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"attnlab.lab.{name}":
            raise  # the room is there; something that it needs is not
        raise AttributeError(f"module 'attnlab.lab' has no attribute {name!r}") from error
