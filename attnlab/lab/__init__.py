"""The laboratory: experiments and studies, run folders, statistics and reports.

Every command except `list` is a function here: `show`, `run`, `report`, `sample`, `score`, `translate`,
`inspect`, `parity`, `bench` and `data`. To define studies there are `Study`, `Experiment`, `Train`, `over`, `product`,
`zipped`, `chain` and `load_study`. `matched` solves a study's match and budget. `load`, `Results` and `RunFolder` give
access to finished runs. `DecodingOptions` says how `sample` and `translate` decode.

All names are imported on first use, so that importing this package stays fast.
"""

_HOMES = {
    "show": "attnlab.lab.planning.summary",
    "run": "attnlab.lab.launch",
    "Results": "attnlab.lab.launch",
    "report": "attnlab.lab.reporting",
    "sample": "attnlab.lab.trained.sample",
    "DecodingOptions": "attnlab.lab.trained.decoding",
    "score": "attnlab.lab.trained.score",
    "translate": "attnlab.lab.trained.translate",
    "inspect": "attnlab.lab.trained.inspect",
    "parity": "attnlab.bench.parity",
    "bench": "attnlab.bench.measuring",
    "BenchConfig": "attnlab.bench.measuring",
    "data": "attnlab.data.io.sources",
    "load": "attnlab.lab.trained.load",
    "load_study": "attnlab.lab.study.load",
    "Study": "attnlab.lab.study",
    "Experiment": "attnlab.lab.study",
    "Train": "attnlab.training.config",
    "over": "attnlab.lab.study.variation",
    "product": "attnlab.lab.study.variation",
    "zipped": "attnlab.lab.study.variation",
    "chain": "attnlab.lab.study.variation",
    "matched": "attnlab.lab.planning.matching",
    "RunFolder": "attnlab.lab.runs.run_folder",
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
            raise  # the submodule exists, but one of its own imports is missing
        raise AttributeError(f"module 'attnlab.lab' has no attribute {name!r}") from error
