import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis import measure
from attnlab.analysis.measure import Program, Quartiles


def test_timings_alternate_after_a_warm_up_round():
    order = []
    programs = {name: Program(run=lambda name=name: order.append(name)) for name in "abc"}
    seconds = measure.timed(programs, 3)
    assert "".join(order) == "abc" + "abc" + "cba" + "abc"
    assert {name: len(values) for name, values in seconds.items()} == {"a": 3, "b": 3, "c": 3}
    with pytest.raises(ValueError, match="repeat=0"):
        measure.timed(programs, 0)


def test_costs_of_a_compiled_program():
    a = np.ones((64, 32), np.float32)
    program = measure.compiled(lambda a: jnp.exp(a @ a.T), a)
    assert program.flops == 2 * 64 * 64 * 32 + 64 * 64
    assert program.memory >= 64 * 64 * 4
    assert program.moved >= 64 * 64 * 4 + 64 * 32 * 4
    assert program.compile_seconds > 0
    np.testing.assert_allclose(program.answer(), np.exp(a @ a.T), rtol=1e-5)


def test_ratios_are_computed_per_round():
    # The machine becomes ten times slower from round to round. The ratio stays the same.
    assert measure.times_faster([1.0, 10.0, 100.0], [2.0, 20.0, 200.0]) == Quartiles(2.0, 2.0, 2.0)


def test_hardware_of_this_machine():
    here = measure.machine(n=256, megabytes=4, repeat=2)
    assert 1e8 < here.flops < 1e16
    assert 1e8 < here.bandwidth < 1e14
