import jax
import pytest

from attnlab.lab.device import use


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
