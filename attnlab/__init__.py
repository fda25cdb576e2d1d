"""attnlab: a laboratory for attention in JAX and Flax.

    >>> import attnlab
    >>> attnlab.__version__.count(".")
    2

Registries and packages are imported on first use, so that `import attnlab` is fast.

- Functions: `attention`, `init_cache`, `decode_step` run any mechanism on batches and heads.
- Registries map names to instances: `MECHANISMS`, `PATTERNS` (of layers), `POSITIONS`, `ATTENTIONS`, `MODELS`, `TASKS`,
  `FEATURES`, `SCORES` (functions), `SCALINGS` (of rotary positions), `UNITS`, `DECODERS`. Add your own with
  `attnlab.MECHANISMS["mine"] = Mine()`.
- Packages: `ops`, `mechanisms`, `modules`, `models`, `decoding`, `data`, `tasks`, `training`, `analysis`, `bench`,
  `lab`, `functional`.
"""

__version__ = "0.2.0"

_ROOMS = [
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
    "functional",
]
_FUNCTIONS = ["attention", "init_cache", "decode_step"]
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
    if name in (*_ROOMS, *_FUNCTIONS):
        from importlib import import_module

        room = import_module(f"attnlab.{name if name in _ROOMS else 'functional'}")
        return room if name in _ROOMS else getattr(room, name)
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_FUNCTIONS, *_REGISTRIES])
