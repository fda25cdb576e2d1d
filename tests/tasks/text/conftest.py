import numpy as np
import pytest

from tests.tasks.text.copying import copies, problem


@pytest.fixture(scope="module")
def copying():
    """Returns the problem of copying words of the letters a to d."""
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("abcd"), random.integers(1, 14))) for _ in range(700)]
    valid = copies(*words[:300:2], group="even") + copies(*words[1:300:2], group="odd")
    return problem({"train": copies(*words, "abcd"), "valid": valid, "test": copies(*words[300:])})
