import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from attnlab.tasks.speech.mean_words import mean_words


@pytest.mark.parametrize("seed", range(3))
def test_words_are_those_of_the_mean_over_frames(seed):
    random = np.random.default_rng(seed)
    nats = log_softmax(random.normal(size=(20, 4)), axis=-1)[:, :3].astype(np.float32)
    piece = random.permutation(np.repeat([0, 1, 2, -1], 5)).astype(np.int32)
    word, chance = mean_words(jnp.asarray(nats), jnp.asarray(piece), 3)
    for n in range(3):
        means = np.mean([row for row, at in zip(nats.astype(np.float64), piece, strict=True) if at == n], axis=0)
        assert word[n] == means.argmax()
        assert chance[n] == pytest.approx(softmax(means).max(), abs=1e-6)


def test_a_recording_without_frames_has_no_word():
    nats = jnp.log(jnp.asarray([[0.2, 0.7], [0.1, 0.6], [0.9, 0.05]], jnp.float32))
    word, _ = mean_words(nats, jnp.asarray([0, 0, -1], jnp.int32), 2)
    assert word.tolist() == [1, -1]


def test_one_sure_frame_can_decide():
    nats = jnp.log(jnp.asarray([[0.6, 0.4], [0.6, 0.4], [0.001, 0.999]], jnp.float32))
    assert mean_words(nats, jnp.zeros(3, jnp.int32), 1)[0].tolist() == [1]
