import jax
import pytest

from attnlab.training.config import Train
from attnlab.training.memory import OutOfMemoryError, readable_memory_errors

LANES = Train(batch_size=64, seeds=3, learning_rate=(1e-3, 1e-2))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 70 bytes.\nMore"), "allocating 70"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_the_message_names_the_fields_to_lower(error, said):
    with pytest.raises(OutOfMemoryError) as refused, readable_memory_errors(LANES, "training"):
        raise error
    line = str(refused.value)
    assert "\n" not in line
    assert line.startswith("out of memory while training (")
    for words in (
        said,
        "train.batch_size=64",
        "train.accumulate=2",
        "train the 6 lanes in several runs",
        "model.width",
    ):
        assert words in line
    assert refused.value.exit_code == 2


def test_a_single_lane_is_not_mentioned():
    with pytest.raises(OutOfMemoryError) as refused, readable_memory_errors(Train(seeds=1), "evaluating"):
        raise MemoryError
    assert "lanes" not in str(refused.value)


def test_other_errors_are_left_alone():
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), readable_memory_errors(LANES, "training"):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")


def test_an_impossibly_large_array():
    with pytest.raises(OutOfMemoryError, match=r"train\.batch_size=64"), readable_memory_errors(LANES, "training"):
        jax.numpy.ones((1 << 31, 1 << 15)).block_until_ready()
