import numpy as np
import pytest

from attnlab.data.audio.joined import Utterances, join_recordings, noisy, varied

RANDOM = np.random.default_rng(0)


def sounds(*lengths: int) -> list[np.ndarray]:
    """Returns recordings with the given numbers of frames. All values of the n-th recording are n."""
    return [np.full((length, 3), n, np.float32) for n, length in enumerate(lengths)]


def test_every_recording_occurs_as_often_as_a_string_is_long():
    drawn = Utterances(np.random.default_rng(1), sounds(*[1] * 50), np.arange(50), 4, 3)
    assert drawn.pieces.shape == (50, 4)
    assert drawn.gaps.shape == (50, 5)
    assert (np.bincount(drawn.pieces.ravel(), minlength=50) == 4).all()
    assert len({tuple(order) for order in drawn.pieces.T.tolist()}) == 4
    assert not any((order == np.arange(50)).all() for order in drawn.pieces.T)
    assert set(drawn.gaps.ravel().tolist()) == {2, 3}
    alone = Utterances(np.random.default_rng(1), sounds(5, 6, 7), np.array([1, 0, 1]), 1, 0)
    assert sorted(alone.pieces[:, 0].tolist()) == [0, 1, 2]
    alone.pieces = np.array([[0], [2], [1]])
    assert alone.lengths().tolist() == [5, 7, 6]
    assert alone.lengths(0.5).tolist() == [8, 11, 9]
    assert alone.spoken(np.array([2, 1])).tolist() == [[0], [1]]


def test_a_batch_knows_the_piece_and_the_word_of_every_frame():
    drawn = Utterances(np.random.default_rng(1), sounds(2, 3), np.array([7, 4], np.int32), 2, 1)
    drawn.pieces, drawn.gaps = np.array([[0, 1], [1, 1]]), np.array([[0, 1, 0], [1, 0, 1]])
    assert drawn.lengths().tolist() == [6, 8]
    frames, keep, piece, word = drawn.batch(np.array([0, 1]), 8, -9.0)
    assert frames[:, :, 0].tolist() == [[0, 0, -9, 1, 1, 1, -9, -9], [-9, 1, 1, 1, 1, 1, 1, -9]]
    assert keep.astype(int).tolist() == [[1, 1, 1, 1, 1, 1, 0, 0], [1] * 8]
    assert piece.tolist() == [[0, 0, -1, 1, 1, 1, -1, -1], [-1, 0, 0, 0, 1, 1, 1, -1]]
    assert word.tolist() == [[7, 7, -1, 4, 4, 4, -1, -1], [-1, 4, 4, 4, 4, 4, 4, -1]]
    shorter, *_ = drawn.batch(np.array([0]), 8, -9.0, lambda x: 2 * x[:1])
    assert shorter[0, :, 0].tolist() == [0, -9, 2, -9, -9, -9, -9, -9]


def test_a_string_is_its_recordings_and_silence_frame_for_frame():
    one, two = (np.full((n, 3), value, np.float32) for n, value in ((2, 5.0), (1, 7.0)))
    frames, owner, count = join_recordings([one, two], [1, 2, 1], 9, -9.0)
    assert frames[:, 0].tolist() == [-9, 5, 5, -9, -9, 7, -9, -9, -9]
    assert (frames == frames[:, :1]).all()
    assert owner.tolist() == [-1, 0, 0, -1, -1, 1, -1, -1, -1]
    assert count == 7
    with pytest.raises(ValueError, match="a string of 7 frames does not fit in width=6"):
        join_recordings([one, two], [1, 2, 1], 6, -9.0)


def test_augmentation_stays_within_bounds_and_can_be_off():
    piece = RANDOM.standard_normal((40, 6)).astype(np.float32)
    np.testing.assert_allclose(varied(RANDOM, piece, 0, 0), piece, atol=1e-6)
    lengths = {len(varied(RANDOM, piece, 0.25, 1)) for _ in range(200)}
    assert min(lengths) >= 30
    assert max(lengths) <= 50
    assert len(lengths) > 15
    assert varied(RANDOM, piece[:1], 0.9, 0).shape == (1, 6)


def test_speed_and_shift_move_frames_and_bands():
    # A ramp over time is the same ramp at any speed. The values of a ramp over bands change by the shift.
    ramp = np.arange(21, dtype=np.float32)[:, None] * np.ones((1, 5), np.float32)
    slow = varied(np.random.default_rng(3), ramp, 0.5, 0)
    np.testing.assert_allclose(slow[:, 2], np.linspace(0, 20, len(slow)), atol=1e-5)
    moved = varied(np.random.default_rng(3), np.ascontiguousarray(ramp.T), 0, 2)
    by = moved[0, 10] - 10
    assert 0.01 < abs(by) <= 2
    np.testing.assert_allclose(moved[0], np.clip(np.arange(21) + by, 0, 20), atol=1e-5)


def test_noise_adds_its_power():
    power = np.array([[1.0, 1e-6]], np.float32)
    np.testing.assert_allclose(np.exp(noisy(np.log(power), np.array([[0.1]]))), power + 0.01, rtol=1e-5)
