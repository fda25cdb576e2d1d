"""attnlab: a laboratory for attention.

    >>> import attnlab
    >>> attnlab.__version__.count(".")
    2

Imported on first use: the registries `MECHANISMS`, `POSITIONS`, `MODELS`, `TASKS`, `FEATURES`, `SCORES`,
`UNITS`, `DECODERS` (name → instance; one's own joins by `attnlab.MECHANISMS["mine"] = Mine()`), and the rooms `ops`,
`mechanisms`, `modules`, `models`, `decoding`, `data`, `tasks`, `training`, `analysis`, `bench`, `lab`.
"""

__version__ = "0.2.0"

_ROOMS = (
    "ops",
    "mechanisms",
    "modules",
    "models",
    "decoding",
    "data",
    "tasks",
    "training",
    "analysis",
    "bench",
    "lab",
)
_REGISTRIES = ("MECHANISMS", "POSITIONS", "MODELS", "TASKS", "FEATURES", "SCORES", "UNITS", "DECODERS")


def __getattr__(name: str):
    # importlib is loaded here: `import attnlab` itself must cost nothing.
    if name in _REGISTRIES:
        from attnlab import registry

        return registry.table(name)
    if name in _ROOMS:
        from importlib import import_module

        return import_module(f"attnlab.{name}")
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_REGISTRIES])
