from dataclasses import replace

import jax
import pytest

from attnlab.lab.execution import worker_count as module
from attnlab.lab.execution.worker_count import MEMORY, STEP, worker_count
from attnlab.lab.planning.plan import plans
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import Variation
from attnlab.system.memory import available_memory
from tests.small import EXPERIMENT, TINY

BASE = change(EXPERIMENT, **TINY)
STUDY = Study(BASE, Variation({"a": {}, "b": {"train.warmup": 3}, "c": {"train.warmup": 4}}), name="s", question="?")


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Returns plans of three long variants with small steps, on a machine with eight cores and much memory."""
    monkeypatch.setattr(module, "cores", lambda: list(range(8)))
    monkeypatch.setattr(module, "available_memory", lambda: 64 * MEMORY)
    monkeypatch.setattr(module, "VARIANT", 0)
    return plans(STUDY, STUDY.variants(), tmp_path, {})


def test_the_flops_of_a_step_are_those_of_all_lanes(found):
    more = change(BASE, **{"train.seeds": 4 * len(BASE.train.lanes)})
    study = replace(STUDY, base=more, vary=Variation({"a": {}}))
    (plan,) = plans(study, study.variants(), found[0].folder.path.parent / "more", {})
    assert plan.step_flops == 4 * found[0].step_flops
    assert found[0].step_flops > 0


def test_each_variant_has_a_process_if_there_are_cores_and_memory(found, monkeypatch):
    assert worker_count(found) == 3
    assert worker_count(found[:1]) == 1
    monkeypatch.setattr(module, "available_memory", lambda: 2 * MEMORY + 1)
    assert worker_count(found) == 2
    monkeypatch.setattr(module, "available_memory", lambda: 0)
    assert worker_count(found) == 1
    monkeypatch.setattr(module, "available_memory", lambda: 64 * MEMORY)
    monkeypatch.setattr(module, "cores", lambda: [0])
    assert worker_count(found) == 1


def test_large_steps_have_several_cores(found):
    larger = lambda times: [replace(plan, step_flops=int(times * STEP)) for plan in found]
    assert [worker_count(larger(times)) for times in (1, 2, 2.1, 4, 4.1, 9)] == [3, 3, 2, 2, 1, 1]


def test_what_takes_seconds_has_one_process(found, monkeypatch):
    monkeypatch.setattr(module, "VARIANT", found[0].step_flops * BASE.train.steps + 1)
    assert worker_count(found) == 1


def test_variants_with_equal_times_do_not_disturb_each_other(found):
    timed = [replace(plan, study=replace(STUDY, budget="seconds")) for plan in found]
    assert worker_count(timed) == 1


def test_an_accelerator_has_one_process(found, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert worker_count(found) == 1


def test_classes_that_cannot_be_imported_have_one_process(found, monkeypatch):
    def refused(plans):
        raise ValueError("defined in a notebook")

    monkeypatch.setattr(module, "sources", refused)
    assert worker_count(found) == 1


def test_a_resumed_variant_keeps_its_number_of_cores(found):
    folder = found[1].folder
    (folder.path / "checkpoints").mkdir(parents=True)
    folder.write("environment", {"cores": 2})
    assert worker_count(found) == 4
    folder.write("environment", {"cores": 8})
    assert worker_count(found) == 1
    folder.write("environment", {"cores": 99})
    assert worker_count(found) == 1


def test_the_available_memory_is_that_of_a_machine():
    assert 2**20 < available_memory() < 2**63
