"""What every test runs under: strict promotion, no reused keys, shapes checked, one compile cache."""

import gc
import os
import tempfile
import urllib.error
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# What is tested is compiled once and run once: optimising it would take longer than running it as it is, and so would
# cutting it into parts for threads. Where XLA still has its older emitters, they are ready in a third of the time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_parallel_codegen_split_count=1"
    + (" --xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else ""),
)

import jax
import pytest
from hypothesis import Phase, settings
from jaxtyping import install_import_hook

# Shapes and dtypes in signatures are checked here, and only here. Left out: states, which as pytrees also hold
# shapes, axes and tracers in the place of arrays.
PYTREES = {"attnlab.mechanisms.cache", "attnlab.mechanisms.position_state"}
HOUSE = Path(__file__).parent.parent
for name in ("ops", "mechanisms", "modules", "models"):
    for file in (HOUSE / "attnlab" / name).rglob("[!_]*.py"):
        if (module := ".".join(file.relative_to(HOUSE).with_suffix("").parts)) not in PYTREES:
            install_import_hook(module, "beartype.beartype")

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir()) / "attnlab-test-cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)

# Examples are a few small numbers: a failing one is plain enough without a search for a smaller.
settings.register_profile("attnlab", deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
settings.load_profile("attnlab")


def pytest_collection_finish():
    """What was imported and collected stays, and tracing leaves much: the collector looks at less, and less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 5)


def room(request):
    """The room that a test is about."""
    return request.path.relative_to(Path(__file__).parent).parts[0] if "tests" in request.path.parts else ""


@pytest.fixture(autouse=True)
def offline(request, monkeypatch, tmp_path):
    """No test of data fetches anything, nor finds or leaves anything in the user's cache."""
    if room(request) in ("data", "tasks"):

        def refuse(*args, **kwargs):
            raise urllib.error.URLError("no network in tests")

        monkeypatch.setattr("urllib.request.urlopen", refuse)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def published():
    """A function: the folder of a data set in $ATTNLAB_DATA; the test skips where it is not there."""

    def find(name: str) -> Path:
        root = os.environ.get("ATTNLAB_DATA")
        if not root or not (Path(root) / name).is_dir():
            pytest.skip(f"$ATTNLAB_DATA holds no {name}")
        return Path(root) / name

    return find


@pytest.fixture(autouse=True)
def few_programs(request, seen={"group": None, "tests": 0}):  # noqa: B006
    """Compiled programs are let go before they are so many that the system has no more memory maps for them.

    A small one takes seven maps and 2.3 MB. Best between groups of tests, which share none; within one it is looked at
    now and then.
    """
    yield
    mark = request.node.get_closest_marker("xdist_group")
    group, before = mark.args[0] if mark else request.path, seen["group"]
    seen.update(group=group, tests=seen["tests"] + 1)
    if group != before or seen["tests"] % 10 == 0:
        maps = Path("/proc/self/maps")
        most = 5_000 if group != before else 15_000
        if maps.exists() and maps.read_bytes().count(b"\n") > most:
            jax.clear_caches()


STRICT = ("ops", "mechanisms", "modules", "models", "decoding", "analysis")


@pytest.fixture(autouse=True)
def strict(request):
    """No silent promotion and no reused key in the attention wing.

    In the work wing optax promotes, and what is recomputed in a backward pass counts as a key used twice.
    """
    promotion = jax.numpy_dtype_promotion("strict" if room(request) in STRICT else "standard")
    with promotion, jax.debug_key_reuse(room(request) in STRICT):
        yield


@pytest.fixture
def x64():
    """Float64 for the length of a test."""
    with jax.enable_x64(True):
        yield
