import os
import shutil
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.training.checkpoints import CheckpointError, Checkpoints, Keep
from attnlab.training.manifest import read
from attnlab.training.state_files import in_utf8

STATE = {"w": jnp.arange(6.0).reshape(2, 3), "key": jax.random.key(7), "step": jnp.int32(3)}


@pytest.fixture
def saved(tmp_path):
    checkpoints = Checkpoints(tmp_path, note=print)
    checkpoints.save(3, STATE, {"seconds": 1.5})
    return checkpoints


def test_a_restored_state_equals_the_saved_one(saved):
    step, state, facts = saved.restore(STATE)
    assert (step, facts) == (3, {"seconds": 1.5})
    np.testing.assert_array_equal(state["w"], STATE["w"])
    np.testing.assert_array_equal(jax.random.key_data(state["key"]), jax.random.key_data(STATE["key"]))
    assert jax.tree.map(lambda x: x.dtype, state) == jax.tree.map(lambda x: x.dtype, STATE)


def test_the_last_few_are_kept(saved):
    for step in (5, 7):
        saved.save(step, STATE, {})
    assert saved.steps() == [5, 7]


def test_without_checkpoints_nothing_is_restored(tmp_path):
    assert Checkpoints(tmp_path / "none").restore(STATE) is None


def test_every_flipped_bit_is_detected_and_the_previous_checkpoint_is_used(saved, capsys):
    saved.save(5, {**STATE, "step": jnp.int32(5)}, {})
    files = sorted(path for path in (saved.folder / "5").rglob("*") if path.is_file() and path.stat().st_size)
    assert len(files) > 2
    for path in files:
        content = path.read_bytes()
        for at in {0, len(content) // 2, len(content) - 1}:
            path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
            assert saved.restore(STATE)[0] == 3, f"a flipped bit in {path.name} was restored"
            assert "skipped" in capsys.readouterr().out
        path.write_bytes(content)
    assert saved.restore(STATE)[0] == 5


@pytest.mark.parametrize("harm", ["missing", "more", "truncated"])
def test_a_damaged_checkpoint_is_refused_by_name(saved, harm):
    path = next(
        path for path in (saved.folder / "3" / "state").rglob("*") if path.is_file() and path.stat().st_size > 4
    )
    if harm == "missing":
        path.unlink()
    elif harm == "more":
        (path.parent / "more").write_text("x")
    else:
        path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CheckpointError, match=r"is intact .*; use --out DIR to train in another folder"):
        saved.restore(STATE)


@pytest.mark.parametrize(
    "target",
    [{**STATE, "w": jnp.zeros((3, 2))}, {**STATE, "w": jnp.zeros((2, 3), jnp.float16)}, {"w": STATE["w"]}],
)
def test_another_shape_dtype_or_tree_is_refused(saved, target):
    with pytest.raises(CheckpointError, match="has another state"):
        saved.restore(target)


def test_a_partly_written_checkpoint_is_ignored(saved):
    (saved.folder / ".9.growing" / "state").mkdir(parents=True)
    (saved.folder / ".2.going").mkdir()
    assert saved.steps() == [3]
    saved.save(4, STATE, {})
    assert {path.name for path in saved.folder.iterdir()} == {"3", "4"}


def test_a_save_removes_later_unusable_checkpoints(saved):
    for step in (5, 7):
        saved.save(step, STATE, {})
        (saved.folder / str(step) / "manifest.json").write_text("{}")
    saved.save(4, STATE, {})
    assert saved.steps() == [4]
    assert saved.restore(STATE)[0] == 4


def test_swapped_checkpoint_folders_are_refused(saved):
    saved.save(5, STATE, {})
    (saved.folder / "3").rename(saved.folder / "x")
    (saved.folder / "5").rename(saved.folder / "3")
    (saved.folder / "x").rename(saved.folder / "5")
    with pytest.raises(CheckpointError, match="5 contains step 3, expected step 5"):
        saved.read(5, STATE)


def test_the_checkpoint_of_another_run_is_refused(saved, tmp_path):
    mine, other = (Checkpoints(tmp_path / name, identity={"configuration": name}) for name in "ab")
    other.save(3, STATE, {})
    shutil.copytree(other.folder, mine.folder)
    with pytest.raises(CheckpointError, match="a/3 belongs to another run: its configuration differs"):
        mine.read(3, STATE)


def test_a_missing_step_is_refused_by_number(saved):
    with pytest.raises(CheckpointError, match="has no checkpoint of step 4; saved steps: 3"):
        saved.read(4, STATE)


MERITS = {1: 0.5, 2: None, 3: 0.9, 4: float("nan"), 5: 0.9, 6: float("inf"), 7: 0.1, 8: None}


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (Keep(last=2, best=0), {7, 8}),
        (Keep(last=1, best=1), {5, 8}),
        (Keep(last=1, best=2), {3, 5, 8}),
        (Keep(last=1, best=9), {1, 3, 5, 7, 8}),
        (Keep(last=1, best=0, every=3), {3, 6, 8}),
        (Keep(last=2, best=1, every=4), {4, 5, 7, 8}),
        (Keep(last=99), set(MERITS)),
    ],
)
def test_keep_selects_the_last_the_best_and_every_nth_and_ignores_non_finite_scores(keep, kept):
    assert keep.of(MERITS) == kept


def test_the_best_and_the_newest_checkpoints_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path, Keep(last=1, best=1))
    for step, selection_score in enumerate([0.2, 0.9, float("nan"), 0.4, None], 1):
        checkpoints.save(step, STATE, {}, selection_score)
        assert step in checkpoints.steps()
    assert checkpoints.steps() == [2, 5]
    assert checkpoints.best() == 2


def test_an_unreadable_score_is_reported_and_skipped(tmp_path):
    heard = []
    checkpoints = Checkpoints(tmp_path, note=heard.append)
    for step, selection_score in ((3, 0.2), (5, 0.9)):
        checkpoints.save(step, STATE, {}, selection_score)
    assert checkpoints.best() == 5
    assert not heard
    (tmp_path / "5" / "manifest.json").write_text("{}")
    assert checkpoints.best() == 3
    assert [line.startswith("skipped: checkpoint ") and "/5/" in line for line in heard] == [True]


def test_without_a_score_there_is_no_best_checkpoint(saved):
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* has a validation score"):
        saved.best()


def test_a_full_disk_is_refused_before_writing(saved, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(
        CheckpointError, match=r"1 checkpoint of this run needs 0.3 MB, but its disk has only 0.0 MB free; free"
    ):
        saved.save(4, STATE, {})
    assert {path.name for path in saved.folder.iterdir()} == {"3"}


def test_a_failed_write_raises_and_keeps_the_previous_checkpoint(saved, monkeypatch):
    import orbax.checkpoint as ocp

    def fail(*given, **how):
        raise ValueError("RESOURCE_EXHAUSTED: Failed to write\nsomewhere")

    monkeypatch.setattr(ocp.PyTreeCheckpointer, "save", fail)
    with pytest.raises(
        CheckpointError, match=r"4 could not be written: RESOURCE_EXHAUSTED: Failed to write somewhere$"
    ):
        saved.save(4, STATE, {})
    assert saved.steps() == [3]
    assert saved.restore(STATE)[0] == 3


def test_the_manifest_describes_the_checkpoint(saved):
    found = read(saved.folder / "3")
    assert found["leaves"]["['w']"] == [[2, 3], "float32"]
    assert found["keys"] == {"['key']": [0, 7]}
    assert found["step"] == 3
    assert all(len(sha) == 64 and size >= 0 for sha, size in found["files"].values())


@pytest.mark.parametrize("name", ["plain", "ümlaut", b"\xff\xfe", "a\nb"])
def test_a_folder_of_any_name_holds_checkpoints(tmp_path, name):
    folder = tmp_path / os.fsdecode(name)
    checkpoints = Checkpoints(folder / "checkpoints")
    state = {"w": jnp.arange(6.0)}
    checkpoints.save(3, state, {})
    assert (folder / "checkpoints" / "3" / "manifest.json").is_file()
    assert len(list(tmp_path.iterdir())) == 1
    step, found, _ = checkpoints.restore(jax.eval_shape(lambda: state))
    assert step == 3
    np.testing.assert_array_equal(found["w"], np.arange(6.0))
    shutil.rmtree(folder)


def test_a_path_that_is_not_utf8_is_opened_by_descriptor(tmp_path, monkeypatch):
    folder = tmp_path / "ü"
    folder.mkdir()
    with in_utf8(folder) as place:
        assert place == folder
    # This imitates a Latin-1 locale, in which the system knows the path by other bytes.
    monkeypatch.setattr(os, "fsencode", lambda path: str(path).encode("latin-1"))
    with in_utf8(folder) as place:
        assert str(place).isascii()
        assert os.path.samestat(os.stat(place), os.stat(folder))


def test_a_limit_on_the_size_of_files_is_named_and_nothing_else_is_printed(tmp_path, capfd):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    values = np.random.default_rng(0).normal(size=(24, 50_000)).astype(np.float32)
    state = {f"w{n}": jnp.asarray(each) for n, each in enumerate(values)}
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"w": jnp.arange(6.0)}, {})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(CheckpointError, match=r"checkpoint \S+2 could not be written: File too large$"):
            checkpoints.save(2, state, {})
        time.sleep(0.5)  # gives the other writes time to end
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capfd.readouterr() == ("", "")
    assert checkpoints.steps() == [1]
