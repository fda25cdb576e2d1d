import os

import jax
import pytest

from attnlab.system.device import use


def test_no_device_leaves_the_choice_to_jax():
    before = jax.config.jax_platforms
    use(None)
    assert jax.config.jax_platforms == before


def test_the_cpu_is_always_available():
    before = jax.config.jax_platforms
    use("cpu")
    assert jax.config.jax_platforms == "cpu"
    jax.config.update("jax_platforms", before)


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match=r"^--device='cuda' is not known.*known: cpu, gpu, tpu$"):
        use("cuda")


@pytest.mark.parametrize("device", ["gpu", "tpu"])
def test_a_missing_device_names_what_to_install(device):
    if any(found.platform == device for found in jax.devices()):
        pytest.skip(f"there is a {device} here")
    before = jax.config.jax_platforms
    with pytest.raises(ValueError, match=rf'^--device {device}: .* pip install "jax\[') as refusal:
        use(device)
    assert "\n" not in str(refusal.value)
    assert jax.config.jax_platforms == before


@pytest.mark.parametrize(("processes", "expected"), [(1, None), (2, "false")])
def test_several_processes_allocate_memory_on_demand(processes, expected, monkeypatch):
    monkeypatch.setitem(os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE", "")  # so that monkeypatch restores it
    monkeypatch.delitem(os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE")
    use(None, processes)
    assert os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE") == expected


def test_an_explicit_preallocation_is_kept(monkeypatch):
    monkeypatch.setitem(os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    use(None, 2)
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true"
