import os

import jax
import pytest

from attnlab.system.device import use


def test_left_to_jax():
    before = jax.config.jax_platforms
    use(None)
    assert jax.config.jax_platforms == before


def test_the_cpu_is_always_there():
    before = jax.config.jax_platforms
    use("cpu")
    assert jax.config.jax_platforms == "cpu"
    jax.config.update("jax_platforms", before)


def test_what_is_not_known():
    with pytest.raises(ValueError, match=r"^--device='cuda' is not known.*known: cpu, gpu, tpu$"):
        use("cuda")


@pytest.mark.parametrize("device", ["gpu", "tpu"])
def test_what_is_not_there_says_what_to_install(device):
    if any(found.platform == device for found in jax.devices()):
        pytest.skip(f"there is a {device} here")
    before = jax.config.jax_platforms
    with pytest.raises(ValueError, match=rf'^--device {device}: .* pip install "jax\[') as refusal:
        use(device)
    assert "\n" not in str(refusal.value)
    assert jax.config.jax_platforms == before


@pytest.mark.parametrize(("processes", "expected"), [(1, None), (2, "false")])
def test_several_processes_leave_one_another_memory(processes, expected, monkeypatch):
    monkeypatch.setitem(os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE", "")  # so that it is put back
    monkeypatch.delitem(os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE")
    use(None, processes)
    assert os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE") == expected


def test_who_said_what_is_to_be_taken_is_heard(monkeypatch):
    monkeypatch.setitem(os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    use(None, 2)
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true"
