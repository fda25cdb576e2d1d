import jax
import jax.numpy as jnp
import pytest

from attnlab.analysis.cost import flops, operations
from attnlab.analysis.roofline import PUBLISHED, Kind, Machine, intensity, kinds
from attnlab.mechanisms import Softmax
from attnlab.modules.attention import Attention

A100 = next(each for each in PUBLISHED if (each.name, each.dtype) == ("A100", "bfloat16"))


def product(n, dtype=jnp.bfloat16):
    square = jax.ShapeDtypeStruct((n, n), dtype)
    (found,) = kinds(operations(lambda a, b: a @ b, square, square))
    return found


def test_an_a100_computes_156_operations_while_it_moves_a_byte():
    assert A100.ridge == 156
    assert A100.attainable(78) == 156e12
    assert A100.attainable(1000) == 312e12


@pytest.mark.parametrize("n", [64, 467, 468, 4096])
def test_a_square_product_in_bfloat16_has_an_intensity_of_a_third_of_its_side(n):
    # 2n³ operations over 3n² numbers of two bytes.
    assert product(n).intensity == pytest.approx(n / 3)
    assert A100.side(product(n).intensity) == ("compute" if n >= 468 else "memory")


def test_an_elementwise_product_is_always_memory_bound():
    for n in (64, 4096):
        x = jax.ShapeDtypeStruct((n, n), jnp.bfloat16)
        (found,) = kinds(operations(jnp.multiply, x, x))
        assert found == Kind("elementwise", 1, n * n, 6 * n * n)
        assert A100.side(found.intensity) == "memory"


def test_loops_count_by_iterations_and_branches_by_the_most_expensive():
    a = jnp.ones((4, 4))
    found = operations(lambda x: jax.lax.scan(lambda c, _: (c @ a, None), x, length=5)[0], a)
    (dot,) = [each for each in found if each.name == "dot_general"]
    assert (dot.rounds, dot.sizes, dot.flops, dot.bytes) == (5, (1, 4, 4, 4), 128, 3 * 64)
    branch = lambda x: jax.lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x + 1, x)
    assert [each.sizes for each in operations(branch, a) if each.name == "dot_general"] == [(1, 4, 4, 4)]


def test_views_move_no_bytes_and_copies_do():
    x = jnp.ones((4, 6), jnp.float32)
    assert kinds(operations(lambda x: x.reshape(24)[None], x)) == []
    assert kinds(operations(lambda x: x.astype(jnp.bfloat16), x)) == [Kind("moves", 1, 0, 24 * 4 + 24 * 2)]


def test_every_operation_of_a_layer_is_classified():
    T, D, H = 64, 32, 4
    layer = jax.eval_shape(lambda: Attention(jax.random.key(0), D, H, Softmax()))
    x = jax.ShapeDtypeStruct((T, D), jnp.float32)
    call = lambda layer, x: layer.attend(x)[0]
    found = {kind.name: kind for kind in kinds(operations(call, layer, x))}
    assert found[f"[{T} {D}] [{D} {3 * D}]"].count == 1  # q, k and v
    assert found[f"[{T} {D}] [{D} {D}]"].count == 1  # o
    assert found[f"{H} × [{T} {D // H}] [{D // H} {T}]"].flops == 2 * T * T * D
    assert sum(kind.flops for kind in found.values()) == flops(call, layer, x)
    assert {A100.side(kind.intensity) for kind in found.values()} == {"memory"}


def test_a_machine_needs_a_bandwidth_above_zero():
    with pytest.raises(ValueError, match="bandwidth=0 must be a finite number above 0"):
        Machine("none", 1e12, 0)
    assert intensity(5, 0) == float("inf")
    assert intensity(0, 0) == 0
