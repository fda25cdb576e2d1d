"""Settings of all tests: strict promotion, no reused keys, checked shapes, and one compilation cache."""

import gc
import os
import tempfile
import urllib.error
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Each test program is compiled once and run once. Optimising it, or splitting it for threads, would take longer than
# running it unoptimised. Where XLA still has its older emitters, they compile in a third of the time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_parallel_codegen_split_count=1"
    + (" --xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else ""),
)

# Environment variables also apply to the processes that tests start.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / "attnlab-test-cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import pytest
from hypothesis import Phase, settings
from jaxtyping import install_import_hook

from tests.groups import group
from tests.slow import add_marks

# Only tests check the shapes and dtypes in signatures. Modules of states are excluded, because states, as pytrees, also
# hold shapes, axes and tracers in place of arrays.
PYTREES = {"attnlab.mechanisms.cache", "attnlab.mechanisms.position_state"}
HOUSE = Path(__file__).parent.parent
for name in ("ops", "mechanisms", "modules", "models"):
    for file in (HOUSE / "attnlab" / name).rglob("[!_]*.py"):
        if (module := ".".join(file.relative_to(HOUSE).with_suffix("").parts)) not in PYTREES:
            install_import_hook(module, "beartype.beartype")

jax.config.update("jax_numpy_rank_promotion", "raise")

# Examples are a few small numbers, so shrinking a failing one is not needed.
settings.register_profile("attnlab", deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
settings.load_profile("attnlab")


LEFT = pytest.StashKey[set[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Marks most cases of the largest grids as slow."""
    config.stash[LEFT] = add_marks(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Runs the tests of a group in one process under `--dist loadgroup`."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group(nodeid)

    return ByGroup(config, log)


def pytest_collection_finish():
    """Makes the garbage collector run less often and on fewer objects.

    Imported modules stay, and tracing creates many objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 5)


def room(request):
    """Returns the folder in `tests` that a test belongs to."""
    return request.path.relative_to(Path(__file__).parent).parts[0] if "tests" in request.path.parts else ""


@pytest.fixture(autouse=True)
def uncached_flops(monkeypatch):
    """Makes each test count FLOPs itself instead of reading the counts of other tests."""
    monkeypatch.setattr("attnlab.system.compilation_cache.folder", lambda: None)


@pytest.fixture(autouse=True)
def offline(request):
    """Keeps tests of data and tasks away from the network and from the user's cache."""
    if room(request) in ("data", "tasks"):

        def refuse(*args, **kwargs):
            raise urllib.error.URLError("no network in tests")

        monkeypatch, tmp_path = map(request.getfixturevalue, ("monkeypatch", "tmp_path"))
        monkeypatch.setattr("urllib.request.urlopen", refuse)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def published():
    """Returns a function that gives the folder of a data set in $ATTNLAB_DATA.

    It skips the test if the folder is missing.
    """

    def find(name: str) -> Path:
        root = os.environ.get("ATTNLAB_DATA")
        if not root or not (Path(root) / name).is_dir():
            pytest.skip(f"$ATTNLAB_DATA holds no {name}")
        return Path(root) / name

    return find


class Memory:
    """Clears compiled programs before a process has 2 GB, or more memory maps than the system allows.

    A small program takes seven maps and up to 2.3 MB. Groups of tests share no programs, so the best time to clear them
    is between groups.
    """

    ROOM = 400 << 20  # bytes that programs may take in addition to what remains after clearing

    def __init__(self):
        self.group, self.tests, self.least = None, 0, 0

    def after(self, group):
        """Clears compiled programs if the process holds too much memory after a test of a group."""
        self.tests += 1
        new, self.group = group != self.group, group
        most = max((1200 if new else 1500) << 20, self.least + self.ROOM)
        if self.resident() > most or ((new or self.tests % 10 == 0) and self.maps() > (5_000 if new else 15_000)):
            from attnlab.system.freed_memory import release

            jax.clear_caches()
            gc.collect()
            release()
            self.least = self.resident()

    def resident(self):
        """Returns the bytes of memory of this process, or 0 if the system does not report it."""
        place = Path("/proc/self/statm")
        return int(place.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if place.exists() else 0

    def maps(self):
        """Returns the number of memory maps of this process, or 0 if the system does not report them."""
        place = Path("/proc/self/maps")
        return place.read_bytes().count(b"\n") if place.exists() else 0


MEMORY = Memory()


@pytest.fixture(autouse=True)
def little_memory(request):
    """Checks the memory of the process after every test."""
    yield
    # The functions of a large file share programs if one process runs them all.
    MEMORY.after(group(request.node.nodeid).split("::")[0])


STRICT = ("ops", "mechanisms", "modules", "models", "decoding", "analysis")


@pytest.fixture(autouse=True)
def strict(request):
    """Forbids silent promotion and reused keys in the packages in STRICT.

    In the other packages, optax promotes, and recomputation in a backward pass counts as a reused key.
    """
    promotion = jax.numpy_dtype_promotion("strict" if room(request) in STRICT else "standard")
    with promotion, jax.debug_key_reuse(room(request) in STRICT):
        yield


@pytest.fixture
def x64():
    """Enables float64 during a test."""
    with jax.enable_x64(True):
        yield
