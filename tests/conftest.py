"""What every test runs under: strict promotion, no reused keys, shapes checked, one compile cache."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import pytest
from jaxtyping import install_import_hook

# Shapes and dtypes in signatures are checked here, and only here. Left out: states, which as pytrees also hold
# shapes, axes and tracers in the place of arrays.
PYTREES = {"attnlab.mechanisms.cache", "attnlab.mechanisms.clock"}
for room in ("ops", "mechanisms", "modules", "models"):
    for file in (Path(__file__).parent.parent / "attnlab" / room).glob("[!_]*.py"):
        if (module := f"attnlab.{room}.{file.stem}") not in PYTREES:
            install_import_hook(module, "beartype.beartype")

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir()) / "attnlab-test-cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


STRICT = ("ops", "mechanisms", "modules", "models", "decoding", "analysis")


@pytest.fixture(autouse=True)
def strict(request):
    """No silent promotion and no reused key in the attention wing.

    In the work wing optax promotes, and what is recomputed in a backward pass counts as a key used twice.
    """
    room = request.path.relative_to(Path(__file__).parent).parts[0] if "tests" in request.path.parts else ""
    promotion = jax.numpy_dtype_promotion("strict" if room in STRICT else "standard")
    with promotion, jax.debug_key_reuse(room in STRICT):
        yield


@pytest.fixture
def x64():
    """Float64 for the length of a test."""
    with jax.enable_x64(True):
        yield
