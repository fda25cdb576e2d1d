"""Lists pitfalls of attention and JAX with the tests that check each, and tests those that no other file checks."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.ops.mask import Causal, Edges, KeyPadding, Segments, Window
from tests.mechanisms.contract import SMALL, attend, attend_back, every, inputs, refusal

ROOT = Path(__file__).parent.parent
FORMS, ABSENCE, GRADIENTS, NUMBERS = (
    f"mechanisms/test_contract_{x}" for x in ("forms", "absence", "gradients", "numbers")
)
HERE = "test_pitfalls"

ATTENTION = {
    "a row with no allowed key": [
        f"{ABSENCE}::test_a_query_without_keys_gives_zero_with_zero_gradient_even_if_it_is_nan",
        "ops/test_softmax::test_a_fully_masked_row_is_zero_with_zero_gradient",
    ],
    "NaN in masked keys and values": [
        f"{ABSENCE}::test_masked_keys_affect_neither_outputs_nor_gradients",
        "modules/test_attention::test_padding_affects_neither_outputs_nor_gradients",
    ],
    "several masks at once": [f"{HERE}::test_several_masks_do_not_overflow_in_half_precision"],
    "causal with fewer queries than keys": [f"{FORMS}::test_given_positions_are_used"],
    "a one-sided window": [
        "ops/test_mask::test_masks_equal_their_definitions",
        f"{GRADIENTS}::test_no_token_has_any_gradient_to_an_earlier_output",
    ],
    "the width of a window": [f"{HERE}::test_a_window_of_one_contains_only_the_token"],
    "layout": [
        f"{HERE}::test_inputs_with_extra_axes_are_refused",
        "modules/test_attention::test_inputs_of_another_width_are_refused",
    ],
    "a cache beyond its end": [f"{FORMS}::test_a_full_cache_raises_and_a_traced_one_touches_no_slot"],
    "forms that disagree": [
        f"{FORMS}::test_every_block_gives_the_same_as_attending_causally",
        f"{FORMS}::test_continuing_from_a_state_equals_one_pass",
        f"{GRADIENTS}::test_gradients_in_two_forms_agree",
        "analysis/test_forms::test_an_off_by_one_error_is_reported_for_its_form",
    ],
    "padding in linear attention": [f"{ABSENCE}::test_padding_changes_neither_values_nor_gradients"],
    "left padding and packing": [
        f"{ABSENCE}::test_padding_changes_neither_values_nor_gradients",
        f"{ABSENCE}::test_packed_sequences_are_independent",
    ],
    "a state in half precision": [
        "ops/test_precision::test_accumulation_dtype_is_at_least_float32",
        "analysis/test_rounding::test_a_state_in_the_precision_of_its_inputs_is_detected",
    ],
    "a denominator near zero": [
        f"{GRADIENTS}::test_small_features_and_closed_gates_keep_finite_gradients",
        "mechanisms/test_linear::test_features_that_underflow_give_zero",
        "mechanisms/test_linear::test_faint_float16_features_are_not_lost",
        "analysis/test_totals::test_a_row_s_sum_is_its_denominator",
    ],
    "decay": ["ops/test_decay::test_gates_that_overflow_as_exponentials_of_sums_give_finite_values_and_gradients"],
    "the triangular solve of the delta rule": [
        "ops/test_delta::test_the_inverse_takes_no_powers",
        "ops/test_delta::test_equal_and_nearly_equal_keys_keep_precision",
    ],
    "the norm of zero": [
        "ops/test_delta::test_l2_normalized_rows_have_norm_one_and_zero_stays_zero_with_a_finite_gradient",
        "ops/test_score::test_cosines_of_zero_and_of_faint_vectors_have_finite_gradients",
    ],
    "a tolerance that cannot fail": [
        f"{NUMBERS}::test_errors_against_float64_stay_within_their_limits",
        f"{GRADIENTS}::test_gradients_agree_with_finite_differences",
        "bench/test_parity::test_an_exceeded_limit_is_named_with_its_row",
        "test_mutations::test_the_text_replaced_by_a_seeded_bug_occurs_once",
    ],
    "maps of linear mechanisms": [f"{FORMS}::test_the_map_reproduces_the_output"],
    "the gradient of a fused kernel under vmap": [
        f"{HERE}::test_no_fused_attention_kernel_is_used",
        "ops/test_blockwise::test_heads_and_examples_in_groups_give_the_same",
    ],
}

JAX = {
    "indexing past the end": [
        "ops/test_mask::test_indices_outside_an_array_are_neither_clamped_nor_counted_from_the_end",
        "modules/test_position::test_positions_beyond_a_learned_table_raise_an_error_and_are_never_clamped",
        "tasks/text/test_transduction::test_ids_are_below_the_vocabularies",
        "tasks/text/test_transduction_scores::test_loss_is_the_mean_over_tokens_and_padding_changes_nothing",
    ],
    "writing past the end": [f"{FORMS}::test_a_full_cache_raises_and_a_traced_one_touches_no_slot"],
    "slices out of range": [f"{FORMS}::test_blocks_agree_over_more_tokens_than_one_block_of_the_fastest_form"],
    "32 bits": [
        "tasks/base/test_checks::test_seeds_of_32_bits",
        "training/test_config::test_invalid_values_are_refused_naming_the_field",
    ],
    "the gradient of where": ["ops/test_precision::test_a_quotient_by_zero_is_zero_with_zero_gradient"],
    "broadcasting": [f"{HERE}::test_tests_run_under_strict_promotion_and_key_checks"],
    "random numbers by precision": ["ops/test_feature::test_random_features_are_the_same_in_every_precision"],
    "raising inside a trace": [f"{FORMS}::test_a_full_cache_raises_and_a_traced_one_touches_no_slot"],
    "operations counted by the compiler": [
        f"{NUMBERS}::test_declared_flops_are_within_a_factor_of_two_of_the_compilers_count",
        "analysis/test_roofline::test_loops_count_by_iterations_and_branches_by_the_most_expensive",
    ],
    "silent promotion": [f"{HERE}::test_tests_run_under_strict_promotion_and_key_checks"],
    "a key used twice": [
        f"{HERE}::test_tests_run_under_strict_promotion_and_key_checks",
        "models/test_transformer::test_dropout_differs_by_its_key_and_uses_no_key_twice",
    ],
    "what changes, what is trained and what is tied in a module": [
        f"{HERE}::test_a_module_has_no_state_besides_parameters",
        "modules/test_block::test_tied_logits_are_products_with_the_embeddings",
    ],
    "statistics of batches": [f"{HERE}::test_error_prone_functions_are_not_used"],
    "time taken before the answer is there": [
        "analysis/test_measure::test_timings_alternate_after_a_warm_up_round",
        "training/test_loop::test_the_time_of_a_step_excludes_compilation",
    ],
    "lanes against single runs": ["training/test_state::test_lanes_equal_single_runs"],
    "bits on other machines": [
        "training/test_loop::test_interrupted_and_resumed_gives_the_same_bits_and_the_same_record"
    ],
    "keys of another kind": [f"{HERE}::test_keys_use_threefry"],
    "the fourth NaN": [
        f"{HERE}::test_error_prone_functions_are_not_used",
        "training/test_state::test_a_lane_that_diverges_is_frozen_and_others_continue",
    ],
    "two classes that are one structure": [
        "ops/test_tree::test_classes_and_static_fields_are_distinguished",
        "ops/test_tree::test_different_masks_are_different_to_jit",
    ],
    "a mean over no tokens": ["tasks/text/test_transduction_scores::test_no_tokens_give_zero_and_not_nan"],
}

FILES = {
    "pickle in data, archives that lead out of their folder, downloads that change": [
        f"{HERE}::test_no_data_is_executed",
        "data/io/test_arrays::test_object_arrays_are_refused_without_unpickling",
        "data/io/test_archives::test_path_traversal_is_refused",
        "data/io/test_archives::test_everything_refused_by_the_tarfile_data_filter_is_refused",
        "data/io/test_published::test_an_altered_file_is_refused_with_path_and_hashes",
    ],
}
ROWS = ATTENTION | JAX | FILES


@pytest.mark.parametrize(("row", "tests"), ROWS.items(), ids=ROWS)
def test_every_row_has_a_test(row, tests):
    assert tests
    for test in tests:
        file, name = test.split("::")
        tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text())
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


# Pitfalls that no other file checks.


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("block", [None, 4])
def test_several_masks_do_not_overflow_in_half_precision(block, dtype):
    # Adding a large negative number per mask would give two or three times that number, which is −∞. Then −∞ + ∞ is
    # NaN.
    mechanism = Softmax(block=block)
    q, k, v, _ = inputs(mechanism, 9, dtype=dtype)
    ids = np.arange(9, dtype=np.int32) // 3
    masks = Causal(), Window(4, 1), KeyPadding(np.arange(9) % 4 > 0), Segments(ids, ids), Edges(np.tri(9, dtype=bool))
    mask = masks[0]
    for other in masks[1:]:
        mask = mask & other
    y, back = attend_back(mechanism, np.ones_like(v), q, k, v, {}, mask)
    assert all(np.isfinite(x.astype(np.float32)).all() for x in jax.tree.leaves((y, back)))
    assert not np.any(y[0]), "its one key is padding"
    seen = np.stack([np.asarray(m(np.arange(9), np.arange(9))) for m in masks]).all(axis=0)
    scores = np.where(seen, (q.astype(float) @ k.astype(float).T) / 2, -np.inf)[1:]
    rows = seen[1:].any(axis=1)
    shares = np.exp(scores[rows] - scores[rows].max(axis=1, keepdims=True))
    expected = shares / shares.sum(axis=1, keepdims=True) @ v.astype(float)
    np.testing.assert_allclose(y[1:][rows].astype(float), expected, atol=0.03)


def test_a_window_of_one_contains_only_the_token():
    q, k, v, _ = inputs(Softmax(), 6)
    np.testing.assert_allclose(attend(Softmax(), q, k, v, Window(1, 1)), v, atol=1e-6)


@every
def test_inputs_with_extra_axes_are_refused(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 4)
    mask = Causal() if refusal(mechanism, KeyPadding(np.ones(4, bool))) else KeyPadding(np.ones(4, bool))
    # Four heads of four tokens with width four: no product fails because of its shapes.
    heads = np.ones((4, 4, 4), np.float32)
    wrong = {
        "one head": (heads, heads, heads, extra),
        "shapes do not match": (q, k[:, :3], v, extra),
        "do not match: expected": (q, k[:3], v, extra),
    }
    for said, (a, b, c, more) in wrong.items():
        with pytest.raises(ValueError, match=said):
            mechanism.attend(a, b, c, mask, **more)
    for extra_name in extra:
        short = {**extra, extra_name: extra[extra_name][..., None]}
        with pytest.raises(ValueError, match=f"{extra_name} must have shape"):
            mechanism.attend(q, k, v, mask, **short)
    if mechanism.traits.decodes:
        with pytest.raises(ValueError, match="do not match"):
            mechanism.extend(mechanism.start(4, 4, 6), q[:3], k, v, **extra)


def sources(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def test_no_fused_attention_kernel_is_used():
    """No mechanism uses a fused attention kernel of another library. Benchmarks may, as a peer."""
    rooms = [f"attnlab/{room}" for room in ("ops", "mechanisms", "modules", "models")]
    assert not [path for path in sources(*rooms) if "dot_product_attention" in path.read_text()]


def test_error_prone_functions_are_not_used():
    for path in sources("attnlab", "experiments", "benchmarks"):
        text = path.read_text()
        for word in ("BatchNorm", "apply_if_finite", "jnp.empty("):
            assert word not in text, f"{path.relative_to(ROOT)} holds {word}"


# Modules that execute what they load, and calls that execute their arguments.
RUNNERS = {"pickle", "cloudpickle", "dill", "jsonpickle", "joblib", "marshal", "shelve", "yaml", "runpy", "pty"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.startfile", "subprocess.getoutput"} | {
    f"os.{kind}{end}" for kind in ("exec", "spawn") for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
}
# Permitted uses. One function executes an experiment file, modules are loaded by names that the source lists, and a
# benchmark passes its environment to its own process.
MAY = {
    ("attnlab/lab/study/load.py", "compile"),
    ("attnlab/lab/study/load.py", "exec"),
    ("attnlab/__init__.py", "import_module of a name"),
    ("attnlab/lab/__init__.py", "import_module of a name"),
    ("attnlab/registry.py", "import_module of a name"),
    ("benchmarks/lanes.py", "os.environ as a whole"),
}


def unsafe(tree):
    """Yields what in a file could execute data or expose the environment."""
    above = {below: node for node in ast.walk(tree) for below in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] in RUNNERS)
        elif isinstance(node, ast.ImportFrom):
            # Importing the function itself would hide the calls to it.
            words = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            yield from (word for word in words if word.split(".")[0] in RUNNERS or word in CALLS | {"numpy.load"})
        elif isinstance(node, ast.Call):
            yield from unsafe_call(node, {word.arg: getattr(word.value, "value", ...) for word in node.keywords})
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ":
            parent = above[node]
            one = isinstance(parent, ast.Attribute | ast.Compare) and getattr(parent, "attr", "get") in (
                "get",
                "setdefault",
            )
            if not one and not (isinstance(parent, ast.Subscript) and parent.value is node):
                yield "os.environ as a whole"


def unsafe_call(node, given):
    """Yields what is unsafe in a call. `given` maps its keywords to their values, where these are constants."""
    called = ast.unparse(node.func).removeprefix("builtins.")
    method = called.rsplit(".", 1)[-1]
    if called in CALLS:
        yield called
    if method == "import_module" and not isinstance(node.args[0], ast.Constant):
        yield "import_module of a name"
    if called in ("np.load", "numpy.load", "jnp.load", "torch.load") and given.get("allow_pickle") is not False:
        yield f"{called} without allow_pickle=False"
    if given.get("allow_pickle", False) is not False:
        yield "allow_pickle"
    if method in ("extract", "extractall", "unpack_archive") and "." in called and given.get("filter") != "data":
        yield f"{method} without the data filter"
    if given.get("shell", False) is not False:
        yield "shell=True"


def test_no_data_is_executed():
    found = {
        (path.relative_to(ROOT).as_posix(), what)
        for path in sources("attnlab", "experiments", "benchmarks", "notebooks")
        for what in unsafe(ast.parse(path.read_text()))
    }
    assert found == MAY


UNSAFE = """
import pickle; import marshal as m; from shelve import open; import yaml; from os import system
from numpy import load; np.load(path, allow_pickle=flag)
np.load(path); np.load(path, allow_pickle=True); numpy.save(path, x, allow_pickle=flag)
eval(text); exec(text); compile(text, "", "exec"); __import__(name); builtins.eval(text); os.execv(a, b)
tar.extractall(path); tar.extract(name, path); tar.extractall(path, filter="tar"); shutil.unpack_archive(file)
subprocess.run(line, shell=True); subprocess.run(line, shell=flag); os.popen(line); os.system(line)
dict(os.environ); print(os.environ); {**os.environ}; os.environ | {}; os.environ.copy(); os.environ.items()
import_module(name); importlib.import_module(f"a.{name}")
"""
SAFE = """
import json; from numpy import save; np.load(path, allow_pickle=False); re.compile(text); lowered.compile()
tar.extractall(path, filter="data"); extract(archive, root); subprocess.run(words, shell=False); subprocess.run(words)
os.environ["A"]; os.environ.get("A", "b"); "A" in os.environ; os.environ.setdefault("A", "b"); ast.literal_eval(text)
import_module("torch"); model.eval()
"""


@pytest.mark.parametrize("line", [line for line in UNSAFE.replace("\n", "; ").split("; ") if line])
def test_every_way_to_execute_data_is_detected(line):
    assert [*unsafe(ast.parse(line))]


def test_safe_code_is_accepted():
    assert [*unsafe(ast.parse(SAFE))] == []


def test_tests_run_under_strict_promotion_and_key_checks():
    assert jax.config.jax_numpy_rank_promotion == "raise"
    rooms = (ROOT / "tests" / "conftest.py").read_text()
    assert 'jax.numpy_dtype_promotion("strict"' in rooms
    assert "jax.debug_key_reuse(" in rooms
    with pytest.raises(ValueError, match="rank"):
        jnp.ones((3, 1)) - jnp.ones(3)


def test_keys_use_threefry():
    assert jax.config.jax_default_prng_impl == "threefry2x32"


@pytest.mark.parametrize("name", ["softmax", "hedgehog", "linformer", "gated-delta"])
def test_a_module_has_no_state_besides_parameters(name):
    from flax import nnx

    from attnlab.modules.attention import Attention

    module = jax.jit(lambda: Attention(jax.random.key(0), 8, 2, MECHANISMS[name]))()
    held = jax.tree.leaves(module, is_leaf=lambda x: isinstance(x, nnx.Variable))
    assert held
    assert all(isinstance(x, nnx.Param) for x in held)
    before = jax.tree.map(np.asarray, module)
    run = jax.jit(lambda module, x: (module.causal if MECHANISMS[name].traits.decodes else module.attend)(x))
    run(module, np.ones((5, 8)))
    jax.tree.map(np.testing.assert_array_equal, before, module)
