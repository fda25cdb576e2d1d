"""attnlab: a laboratory for attention in JAX and Flax.

    >>> import attnlab
    >>> attnlab.__version__.count(".")
    2

Registries and packages are imported on first use, so that `import attnlab` is fast.

- Registries map names to instances: `MECHANISMS`, `POSITIONS`, `ATTENTIONS`, `MODELS`, `TASKS`, `FEATURES`, `SCORES`
  (functions), `SCALINGS` (of rotary positions), `UNITS`, `DECODERS`. Add your own with
  `attnlab.MECHANISMS["mine"] = Mine()`.
- Packages: `ops`, `mechanisms`, `modules`, `models`, `decoding`, `data`, `tasks`, `training`, `analysis`, `bench`,
  `lab`.
"""

__version__ = "0.2.0"

_ROOMS = ["ops", "mechanisms", "modules", "models", "decoding", "data", "tasks", "training", "analysis", "bench", "lab"]
_REGISTRIES = [
    "MECHANISMS",
    "PATTERNS",
    "POSITIONS",
    "ATTENTIONS",
    "MODELS",
    "TASKS",
    "FEATURES",
    "SCORES",
    "SCALINGS",
    "UNITS",
    "DECODERS",
]


def __getattr__(name: str):
    # importlib is imported here to keep `import attnlab` fast.
    if name in _REGISTRIES:
        from attnlab import registry

        return registry.table(name)
    if name in _ROOMS:
        from importlib import import_module

        return import_module(f"attnlab.{name}")
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_REGISTRIES])
