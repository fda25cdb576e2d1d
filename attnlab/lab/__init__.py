"""The laboratory: experiments and studies, run folders, statistics, reports.

The verbs of the command line are calls here, imported on first use: `show`, `run`, `report`, `sample`, `translate`,
`inspect`, `parity`, `bench` (of `Cells`) and `data`. So are `load`, `Results`, `Study`, `Experiment`, `Train`, `over`,
`product`, `zipped`, `chain`, `matched`, `load_study` and `RunFolder`.
"""

_HOMES = {
    "show": "attnlab.lab.showing",
    "run": "attnlab.lab.runs",
    "Results": "attnlab.lab.runs",
    "report": "attnlab.lab.reporting",
    "sample": "attnlab.lab.sampling",
    "score": "attnlab.lab.scoring",
    "translate": "attnlab.lab.translating",
    "inspect": "attnlab.lab.inspecting",
    "parity": "attnlab.lab.standing",
    "bench": "attnlab.lab.benching.measuring",
    "Cells": "attnlab.lab.benching.measuring",
    "data": "attnlab.data.sources",
    "load": "attnlab.lab.loading",
    "load_study": "attnlab.lab.file",
    "Study": "attnlab.lab.study",
    "Experiment": "attnlab.lab.study",
    "Train": "attnlab.training.config",
    "over": "attnlab.lab.variation",
    "product": "attnlab.lab.variation",
    "zipped": "attnlab.lab.variation",
    "chain": "attnlab.lab.variation",
    "matched": "attnlab.lab.matching",
    "RunFolder": "attnlab.lab.folder",
}


__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__():
    return __all__


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
