import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.training.checkpoints import CheckpointError, Checkpoints

STATE = {"w": jnp.arange(6.0).reshape(2, 3), "key": jax.random.key(7), "step": jnp.int32(3)}


@pytest.fixture
def saved(tmp_path):
    checkpoints = Checkpoints(tmp_path, note=print)
    checkpoints.save(3, STATE, {"seconds": 1.5})
    return checkpoints


def test_what_is_restored_is_what_was_saved(saved):
    step, state, facts = saved.restore(STATE)
    assert (step, facts) == (3, {"seconds": 1.5})
    np.testing.assert_array_equal(state["w"], STATE["w"])
    np.testing.assert_array_equal(jax.random.key_data(state["key"]), jax.random.key_data(STATE["key"]))
    assert jax.tree.map(lambda x: x.dtype, state) == jax.tree.map(lambda x: x.dtype, STATE)


def test_the_last_few_are_kept(saved):
    for step in (5, 7):
        saved.save(step, STATE, {})
    assert saved.steps() == [5, 7]


def test_nothing_saved_is_nothing_restored(tmp_path):
    assert Checkpoints(tmp_path / "none").restore(STATE) is None


def test_every_flipped_bit_is_found_and_named_and_the_one_before_is_taken(saved, capsys):
    saved.save(5, {**STATE, "step": jnp.int32(5)}, {})
    files = sorted(path for path in (saved.folder / "5").rglob("*") if path.is_file() and path.stat().st_size)
    assert len(files) > 2
    for path in files:
        content = path.read_bytes()
        for at in {0, len(content) // 2, len(content) - 1}:
            path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
            if path.name == "manifest.json" and _same_meaning(content, path.read_bytes()):
                continue
            assert saved.restore(STATE)[0] == 3, f"a flipped bit in {path.name} was restored"
            assert "passed over" in capsys.readouterr().out
        path.write_bytes(content)
    assert saved.restore(STATE)[0] == 5


def _same_meaning(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize("harm", ["missing", "more", "truncated"])
def test_a_harmed_checkpoint_is_refused_by_name(saved, harm):
    path = next(
        path for path in (saved.folder / "3" / "state").rglob("*") if path.is_file() and path.stat().st_size > 4
    )
    if harm == "missing":
        path.unlink()
    elif harm == "more":
        (path.parent / "more").write_text("x")
    else:
        path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CheckpointError, match="--fresh starts again"):
        saved.restore(STATE)


@pytest.mark.parametrize(
    "target",
    [{**STATE, "w": jnp.zeros((3, 2))}, {**STATE, "w": jnp.zeros((2, 3), jnp.float16)}, {"w": STATE["w"]}],
)
def test_another_shape_dtype_or_tree_is_refused(saved, target):
    with pytest.raises(CheckpointError, match="holds another state"):
        saved.restore(target)


def test_what_a_kill_left_half_written_is_no_checkpoint(saved):
    (saved.folder / ".9.growing" / "state").mkdir(parents=True)
    assert saved.steps() == [3]


def test_what_was_just_saved_is_kept_and_what_was_passed_over_goes(saved):
    for step in (5, 7):
        saved.save(step, STATE, {})
        (saved.folder / str(step) / "manifest.json").write_text("{}")
    saved.save(4, STATE, {})
    assert saved.steps() == [4]
    assert saved.restore(STATE)[0] == 4
