"""Puts seeded bugs into copies of the project, one at a time, and checks that the tests catch each of them.

    python -m tests.mutations            every bug, two at a time; four minutes on two cores
    python -m tests.mutations rotary mask   those whose names contain one of the words

A bug counts as caught if a test fails. If the tests cannot run, it counts as not caught. The exit code is 0 only if
all bugs are caught.
"""

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns

ROOT = Path(__file__).parent.parent
OPTIONS = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "-m", ""]  # slow tests, too


def contract(name, *parts):
    """Returns the pytest arguments of the contract tests of one mechanism."""
    files = [f"tests/mechanisms/test_contract_{part}.py" for part in parts or ("forms", "absence", "gradients")]
    return [*files, "-k", f"[{name}] or -{name}]"]


def equation(words):
    """Returns the pytest arguments that select equation tests of mechanisms by words in their names."""
    return ["tests/mechanisms/test_equations.py", "-k", words]


def ops(*names):
    """Returns the test files of the given modules of ops."""
    return [f"tests/ops/test_{name}.py" for name in names]


@dataclass(frozen=True)
class Bug:
    """A seeded bug: its name, the file in attnlab, the original text, the replacement, and the tests to run."""

    name: str
    file: str
    right: str
    wrong: str
    tests: list[str]


BUGS = [
    Bug(
        "mask of the other polarity",
        "ops/softmax.py",
        "scores = jnp.where(allowed,",
        "scores = jnp.where(~allowed,",
        contract("softmax"),
    ),
    Bug(
        "causal mask hides the token itself",
        "ops/mask/formula.py",
        "return j[None, :] <= i[:, None]",
        "return j[None, :] < i[:, None]",
        contract("softmax"),
    ),
    Bug(
        "causal mask shows the next token",
        "ops/mask/formula.py",
        "return j[None, :] <= i[:, None]",
        "return j[None, :] <= i[:, None] + 1",
        contract("softmax"),
    ),
    Bug(
        "window one token too wide",
        "ops/mask/formula.py",
        "return (-self.right < distance) & (distance < self.left)",
        "return (-self.right < distance) & (distance <= self.left)",
        ops("mask"),
    ),
    Bug(
        "window open to the right",
        "ops/mask/formula.py",
        "return (-self.right < distance) & (distance < self.left)",
        "return distance < self.left",
        ops("mask"),
    ),
    Bug(
        "blocks skipped that a window reaches",
        "ops/mask/formula.py",
        "if high <= -self.right or low >= self.left:",
        "if high <= -self.right or low >= self.left - 2:",
        ops("mask"),
    ),
    Bug(
        "queries aligned at the top left",
        "mechanisms/checked.py",
        "_positions(i, S - T, S)",
        "_positions(i, 0, T)",
        contract("softmax", "forms"),
    ),
    Bug(
        "scores not scaled",
        "ops/score.py",
        "return q * q.shape[-1] ** -0.5, k",
        "return q, k",
        ops("score"),
    ),
    Bug(
        "scores scaled by the width, not its root",
        "ops/score.py",
        "return q * q.shape[-1] ** -0.5, k",
        "return q / q.shape[-1], k",
        ops("score"),
    ),
    Bug(
        "softmax over queries",
        "ops/softmax.py",
        "total = share.sum(axis=-1, keepdims=True)",
        "total = share.sum(axis=-2, keepdims=True)",
        contract("softmax"),
    ),
    Bug(
        "softmax gradient with the diagonal alone",
        "ops/softmax.py",
        "weights * (change - jnp.sum(weights * change, axis=-1, keepdims=True))",
        "weights * (1 - weights) * change",
        contract("softmax", "gradients"),
    ),
    Bug(
        "row without a key divided by zero",
        "ops/softmax.py",
        "jnp.where(total == 0, jnp.zeros_like(total), 1 / jnp.maximum(total, 1))",
        "1 / total",
        contract("softmax", "absence"),
    ),
    Bug(
        "masked values reach the product",
        "mechanisms/inputs.py",
        "zero_where_padded(columns, k), zero_where_padded(columns, v), extra",
        "zero_where_padded(columns, k), v, extra",
        contract("softmax", "absence"),
    ),
    Bug(
        "padding reaches the product",
        "mechanisms/inputs.py",
        "return zero_where_padded(rows, q), zero_where_padded(columns, k), zero_where_padded(columns, v), extra",
        "return q, k, v, extra",
        contract("linear", "absence"),
    ),
    Bug(
        "padded keys share the denominator",
        "mechanisms/linear.py",
        "weights = visible if k.scale is None",
        "weights = visible | True if k.scale is None",
        contract("linear", "absence"),
    ),
    Bug(
        "epsilon in the denominator",
        "ops/linear.py",
        "return divide(y, jnp.where(jnp.abs(total) < least, jnp.zeros_like(total), total))",
        "return y / (total + 1e-6)",
        contract("linear"),
    ),
    Bug(
        "what is known in part taken for all",
        "ops/linear.py",
        "bool(weights.all())",
        "bool(weights.any())",
        ops("linear"),
    ),
    Bug(
        "denominator of turned features",
        "mechanisms/linear.py",
        "denominator = weights if q.denominator_rows is None else met(q.denominator_rows, k.denominator_rows)",
        "denominator = weights",
        ["tests/modules/test_rotary_features.py"],
    ),
    Bug(
        "sum of linear attention kept in half precision",
        "mechanisms/linear.py",
        "return self._empty(K, V, accumulation_dtype(dtype))",
        "return self._empty(K, V, dtype)",
        contract("linear", "numbers"),
    ),
    Bug(
        "state of a decay kept in half precision",
        "mechanisms/recurrent.py",
        "return jnp.zeros((K, V), accumulation_dtype(dtype))",
        "return jnp.zeros((K, V), dtype)",
        contract("retention", "forms"),
    ),
    Bug(
        "elu without its one",
        "ops/feature/elementwise.py",
        "jnp.where(x > 0, x + 1,",
        "jnp.where(x > 0, x,",
        ops("feature"),
    ),
    Bug(
        "random features without the norm",
        "ops/feature/random.py",
        "size = jnp.sum(x * x, axis=1, keepdims=True) / 2",
        "size = jnp.sum(x * x, axis=1, keepdims=True) * 0",
        ops("feature"),
    ),
    Bug(
        "second order of Taylor without its half",
        "ops/feature/products.py",
        "square(x) * 0.5**0.5",
        "square(x)",
        ops("feature"),
    ),
    Bug(
        "positions of cosFormer off by one for keys",
        "ops/feature/position.py",
        "return FeatureRows(self._turned(x, j, 0))",
        "return FeatureRows(self._turned(x, j + 1, 0))",
        ops("feature"),
    ),
    Bug(
        "state seen across segments",
        "ops/token_block.py",
        "self.keep & (self.run == self.before)",
        "self.keep",
        contract("linear", "absence"),
    ),
    Bug(
        "state lives on in a new segment",
        "ops/token_block.py",
        "np.array(True) if self.plain else self.run[-1] == self.before",
        "np.array(True)",
        contract("retention", "absence"),
    ),
    Bug(
        "tokens of an old segment enter the state",
        "ops/token_block.py",
        "self.keep & (self.run == self.run[-1])",
        "self.keep",
        contract("delta", "absence"),
    ),
    Bug(
        "padding takes a position",
        "mechanisms/position_state.py",
        "count = jnp.cumsum(keep, dtype=jnp.int32)",
        "count = jnp.arange(1, T + 1, dtype=jnp.int32)",
        contract("window", "absence"),
    ),
    Bug(
        "positions do not count on",
        "mechanisms/position_state.py",
        "counted = position_state.position + count - start",
        "counted = count - start",
        contract("window", "forms"),
    ),
    Bug(
        "cache one slot off",
        "mechanisms/cache.py",
        "slot = self.count + jnp.cumsum(block.keep, dtype=jnp.int32) - 1",
        "slot = self.count + jnp.cumsum(block.keep, dtype=jnp.int32)",
        contract("softmax", "forms"),
    ),
    Bug(
        "full cache writes over its last slot",
        "mechanisms/cache.py",
        'mode="drop"',
        'mode="clip"',
        contract("softmax", "forms"),
    ),
    Bug(
        "padding fades the state",
        "ops/decay.py",
        "fade = apply_weights(log_gates, block.keep[:, None])",
        "fade = log_gates",
        contract("retention", "absence"),
    ),
    Bug(
        "a token's write faded by its own gate",
        "ops/gate_products.py",
        "sums = [GateSums(filled, jnp.zeros_like(filled))]",
        "sums = [GateSums(filled, filled)]",
        ["tests/mechanisms/test_gates.py"],
    ),
    Bug(
        "state read without the gates since",
        "ops/decay.py",
        "q * jnp.exp(sums.from_start)",
        "q",
        contract("ssd", "forms"),
    ),
    Bug(
        "gates as the difference of two sums",
        "ops/decay.py",
        "k * jnp.exp(sums.to_end)",
        "k * jnp.exp(sums.from_start[:, -1:] - sums.from_start)",
        ops("decay"),
    ),
    Bug(
        "delta rule erases nothing of the state",
        "ops/delta.py",
        "u = ahead - read @ state",
        "u = ahead",
        contract("delta", "forms"),
    ),
    Bug(
        "keys of the delta rule not of norm one",
        "mechanisms/chunked.py",
        "l2_normalize(q, self.epsilon), l2_normalize(k, self.epsilon)",
        "l2_normalize(q, self.epsilon), k",
        ["tests/mechanisms/test_delta.py"],
    ),
    Bug(
        "queries of the delta rule not over the root of their width",
        "mechanisms/chunked.py",
        "return (divide_by_sqrt_width(q) if self.scale_queries else q), k",
        "return q, k",
        ["tests/mechanisms/test_delta.py"],
    ),
    Bug(
        "keys of the delta rule with a floor and no epsilon",
        "mechanisms/chunked.py",
        "l2_normalize(q, self.epsilon), l2_normalize(k, self.epsilon)",
        "l2_normalize(q), l2_normalize(k)",
        ["tests/mechanisms/test_delta.py"],
    ),
    Bug(
        "Reformer's scores over the root of the width twice",
        "mechanisms/reformer.py",
        "scaled_dot if self.scale_queries else dot",
        "scaled_dot",
        ["tests/mechanisms/test_reformer.py"],
    ),
    Bug(
        "one sum over both halves of Hedgehog",
        "ops/feature/learned.py",
        "if self.joint or self.activation.scaled:",
        "if True:",
        ops("feature"),
    ),
    Bug(
        "keys by keys in one product with queries by keys",
        "ops/gate_products.py",
        "return tuple(row @ turned for row in rows)",
        "return jnp.split(jnp.concatenate(rows, axis=1) @ turned, len(rows), axis=1)",
        ["tests/modules/test_grouped.py"],
    ),
    Bug(
        "gradient of the triangular inverse without its sign",
        "ops/triangle.py",
        "return x, -(x @ jnp.tril(tangents[0], -1) @ x)",
        "return x, x @ jnp.tril(tangents[0], -1) @ x",
        contract("delta", "gradients"),
    ),
    Bug(
        "running sum not faded to the new peak",
        "ops/blockwise/sweep.py",
        "peak, total, mixed, scores = new, total * fade, mixed * fade[:, None], scores - finite[:, None]",
        "peak, total, mixed, scores = new, total, mixed * fade[:, None], scores - finite[:, None]",
        ops("blockwise"),
    ),
    Bug(
        "blockwise gradient without the mean",
        "ops/blockwise/sweep.py",
        "dnorm) - (dy * y).sum(axis=1)",
        "dnorm)",
        ops("blockwise"),
    ),
    Bug(
        "landmarks of Nyström count padding",
        "mechanisms/nystrom.py",
        "nystrom.segments(columns, j, self.landmarks)",
        "nystrom.segments(columns | True, j, self.landmarks)",
        contract("nystrom", "absence"),
    ),
    Bug(
        "rotation of one sign",
        "ops/position/rotary.py",
        "one * cos - other * sin",
        "one * cos + other * sin",
        ops("position"),
    ),
    Bug(
        "slopes that begin at one",
        "ops/position/relative.py",
        "[2 ** (-8 * h / below) for h in range(1, below + 1)]",
        "[2 ** (-8 * h / below) for h in range(below)]",
        ops("position"),
    ),
    Bug(
        "root-mean-square norm that takes the mean off",
        "ops/layer.py",
        "wider = x.astype(accumulation_dtype(x.dtype))",
        "wider = x.astype(accumulation_dtype(x.dtype)); wider = wider - jnp.mean(wider, axis=-1, keepdims=True)",
        ops("layer"),
    ),
    Bug(
        "a head dropped",
        "modules/head_projections.py",
        "return self.o(y.reshape(y.shape[0], self.heads * self.value_width))",
        "return self.o(y.at[:, 0].set(0).reshape(y.shape[0], self.heads * self.value_width))",
        ["tests/modules/test_attention.py"],
    ),
    Bug(
        "map of the transposed",
        "mechanisms/maps.py",
        "return mechanism.attend(q, k, v, mask, **extra)",
        "return mechanism.attend(q, k, v[::-1], mask, **extra)",
        contract("softmax", "forms"),
    ),
    Bug(
        "a loop over blocks counted as one round",
        "ops/blockwise/schedule.py",
        "with annotate_trip_counts(*visits.mean):",
        "with annotate_trip_counts([1], 1):",
        ["tests/analysis/test_cost.py"],
    ),
    Bug(
        "every block counted as the dearest",
        "analysis/cost.py",
        "return fits or [int(n == dearest)",
        "return [int(n == dearest)",
        ["tests/analysis/test_cost.py"],
    ),
    Bug(
        "erased key without its strength in Gated DeltaNet-2",
        "mechanisms/gated_delta2.py",
        "self.strength(cast(erase)) * k",
        "k",
        equation("gated-delta-2"),
    ),
    Bug(
        "value written without its gate in Gated DeltaNet-2",
        "mechanisms/gated_delta2.py",
        "jax.nn.sigmoid(cast(write)) * cast(v)",
        "cast(v)",
        equation("gated-delta-2"),
    ),
    Bug(
        "strengths of at most one where negative eigenvalues are asked for",
        "mechanisms/chunked.py",
        "(2 if self.negative_eigenvalues else 1)",
        "1",
        equation("strength"),
    ),
    Bug(
        "the state decays before every write of DeltaProduct",
        "mechanisms/delta_product.py",
        "first = jnp.pad(log_gates[:, None], ((0, 0), (0, n - 1), (0, 0)))",
        "first = jnp.repeat(log_gates[:, None], n, axis=1)",
        equation("delta-product"),
    ),
    Bug(
        "DeltaProduct read after its first write",
        "mechanisms/delta_product.py",
        "return y[n - 1 :: n], memory",
        "return y[::n], memory",
        equation("delta-product"),
    ),
    Bug(
        "HGRN2 writes all that it is given",
        "mechanisms/hgrn2.py",
        "decay.causal(memory, q, written,",
        "decay.causal(memory, q, jnp.ones_like(written),",
        equation("hgrn2"),
    ),
    Bug(
        "denominator of mLSTM without its least value",
        "ops/exponential_gates.py",
        "jnp.maximum(jnp.abs(y[:, :, -1:]), jnp.exp(-level)[:, :, None])",
        "jnp.abs(y[:, :, -1:])",
        equation("mlstm"),
    ),
    Bug(
        "denominator of mLSTM with its sign",
        "ops/exponential_gates.py",
        "jnp.abs(y[:, :, -1:])",
        "y[:, :, -1:]",
        equation("mlstm"),
    ),
    Bug(
        "RWKV-7 reads the state after its decay",
        "ops/diagonal_plus_low_rank.py",
        "c * jnp.exp(-fade)",
        "c",
        equation("rwkv7"),
    ),
    Bug(
        "RWKV-7 writes what it read without its strength",
        "mechanisms/rwkv7.py",
        "a * read, -read",
        "read, -read",
        equation("rwkv7"),
    ),
    Bug(
        "a segment of Mamba begins with the state before it",
        "ops/selective_scan.py",
        "gates = jnp.where(begins[:, None, None], 0, gates)",
        "",
        equation("mamba"),
    ),
    Bug(
        "Mamba-3 gives the token before no second weight",
        "mechanisms/mamba3.py",
        "(last_write + (1 - share) * dt)",
        "last_write",
        equation("mamba3"),
    ),
    Bug(
        "a segment of Mamba-3 begins with the key before it",
        "mechanisms/mamba3.py",
        "jnp.where(own, x[at], 0)",
        "x[at]",
        equation("mamba3"),
    ),
    Bug(
        "the input of an RG-LRU is not scaled by its gate",
        "ops/cell.py",
        "jnp.sqrt(ratio) * jax.nn.sigmoid(i)",
        "jax.nn.sigmoid(i)",
        ops("cell"),
    ),
    Bug(
        "rows of a boolean mask stand at positions from 0",
        "functional/attention.py",
        "self.mask(i - self.first, j)",
        "self.mask(i, j)",
        ["tests/functional", "-k", "jax"],
    ),
    Bug(
        "forget gate of the key itself counted",
        "ops/later_sums.py",
        "jnp.tril(jnp.ones((size, size), x.dtype), -1)",
        "jnp.tril(jnp.ones((size, size), x.dtype))",
        equation("forgetting"),
    ),
    Bug(
        "later sums within groups only",
        "ops/later_sums.py",
        "within += later_sums(groups.sum(axis=2))[:, :, None]",
        "pass",
        equation("forgetting"),
    ),
    Bug(
        "sums of gates without what rounding left out",
        "ops/precise_sums.py",
        "+ (self.low[i][:, None] - self.low[j][None, :])",
        "+ 0 * (self.low[i][:, None] - self.low[j][None, :])",
        ops("precise_sums"),
    ),
    Bug(
        "stick-breaking attends to the token itself",
        "mechanisms/stick_breaking.py",
        "if not self.attend_current:",
        "if False:",
        equation("stick-breaking"),
    ),
    Bug(
        "blocks of stick-breaking forget what later blocks took",
        "ops/stick_breaking.py",
        "rest + left.sum(axis=1)",
        "rest",
        equation("blocks"),
    ),
    Bug(
        "sink without a share by blocks",
        "mechanisms/pattern_softmax.py",
        "return y * jax.nn.sigmoid(",
        "return y + 0 * jax.nn.sigmoid(",
        equation("blocks"),
    ),
    Bug(
        "PaTH transforms a key by its own token",
        "mechanisms/path.py",
        "jnp.arange(T, dtype=jnp.int32)[:, None] > jnp.arange(-N, T, dtype=jnp.int32)[None, :]",
        "jnp.arange(T, dtype=jnp.int32)[:, None] >= jnp.arange(-N, T, dtype=jnp.int32)[None, :]",
        equation("path"),
    ),
    Bug(
        "lambda of differential attention without its start",
        "mechanisms/differential.py",
        "one - other + self.start_mix",
        "one - other",
        equation("differential"),
    ),
    Bug(
        "slots decay by the gates of the key",
        "ops/slots.py",
        "* jnp.exp(cut(since)[:, :, 1])",
        "",
        equation("gsa"),
    ),
    Bug(
        "regression without its ridge",
        "ops/mesa.py",
        "+ jnp.diag(ridge)[None, None]",
        "+ 1e-9 * jnp.diag(ridge)[None, None]",
        equation("mesa"),
    ),
    Bug(
        "the corner of an inverse with the other sign",
        "ops/positive_definite.py",
        "[-corner.T, last]",
        "[corner.T, last]",
        ["tests/ops/test_positive_definite.py"],
    ),
    Bug(
        "programs that were compiled ahead are compiled again",
        "training/trainer.py",
        "future = self.ahead.pop(key, None)",
        "future = None",
        ["tests/lab/execution/test_ahead.py"],
    ),
    Bug(
        "the own block picked only if it is among the best",
        "mechanisms/moba.py",
        "jnp.where(blocks.numbers == blocks.own[:, None], jnp.inf, jnp.where(visible, means, -jnp.inf))",
        "jnp.where(visible, means, -jnp.inf)",
        equation("picked"),
    ),
    Bug(
        "compressed blocks that are not complete",
        "mechanisms/nsa.py",
        "visible & ((numbers + 1) * self.size - 1 <= jnp.asarray(i)[:, None])",
        "visible",
        equation("native"),
    ),
    Bug(
        "sums of log-linear attention keep their level",
        "ops/log_linear.py",
        "one_hot(moved(count[None])[0])",
        "one_hot(own)",
        equation("log-linear"),
    ),
    Bug(
        "the second direction not turned back",
        "mechanisms/bidirectional.py",
        "forward(columns) + reverse(forward(reverse(columns)))",
        "forward(columns) + forward(reverse(columns))",
        equation("directions"),
    ),
    Bug(
        "products of two different components counted once",
        "ops/feature/power.py",
        "return columns, np.sqrt(orders)",
        "return columns, np.ones(len(columns))",
        ops("feature"),
    ),
    Bug(
        "products of permutations in the other order",
        "data/synthetic/groups.py",
        "composed = points[:, points].swapaxes(0, 1)",
        "composed = points[:, points]",
        ["tests/data/synthetic/test_groups.py"],
    ),
    Bug(
        "a table that is not associative is taken",
        "data/synthetic/groups.py",
        "left, right = table[table[a]], table[a][table]",
        "left, right = table[a][table], table[a][table]",
        ["tests/data/synthetic/test_groups.py"],
    ),
    Bug(
        "the reflection of a polygon does not turn rotations back",
        "data/synthetic/groups.py",
        "np.where(flipped, -1, 1)",
        "np.where(flipped, 1, 1)",
        ["tests/data/synthetic/test_groups.py"],
    ),
    Bug(
        "the bracket that opened first is closed",
        "data/synthetic/dyck.py",
        "np.where(level > 0, kinds + open_kinds[rows, level], NONE)",
        "np.where(level > 0, kinds + open_kinds[rows, 1], NONE)",
        ["tests/data/synthetic/test_dyck.py"],
    ),
    Bug(
        "closing brackets scored alike at all distances",
        "tasks/synthetic/dyck.py",
        "float(shares.mean())",
        "float(right.mean())",
        ["tests/tasks/synthetic/test_dyck.py"],
    ),
    Bug(
        "words with an error count by their right products",
        "tasks/synthetic/lengths.py",
        "(right | ~scored).all(axis=1).mean()",
        "right[scored].mean()",
        ["tests/tasks/synthetic/test_group_words.py"],
    ),
    Bug(
        "tokens to copy in the order of drawing",
        "data/synthetic/copying.py",
        "np.sort(np.argsort(random.random((size, length)), axis=1)[:, :count], axis=1)",
        "np.argsort(random.random((size, length)), axis=1)[:, :count]",
        ["tests/tasks/synthetic/test_copying.py"],
    ),
    Bug(
        "a needle within a sentence",
        "data/synthetic/needle.py",
        'begins[np.searchsorted(begins, depths * len(hay), side="right") - 1]',
        "(depths * len(hay)).astype(int)",
        ["tests/tasks/synthetic/test_needle.py"],
    ),
    Bug(
        "the cap is lost where scores are products",
        "ops/learned_score.py",
        "Scores(dot, {}, softcap=self.softcap)",
        "Scores(dot, {})",
        ["tests/mechanisms/test_softcap.py"],
    ),
    Bug(
        "the cap is lost along edges",
        "ops/edges.py",
        "Scores(_joined, {}, softcap=scores.softcap)",
        "Scores(_joined, {})",
        ["tests/mechanisms/test_softcap.py"],
    ),
    Bug(
        "the backward pass by blocks ignores the cap",
        "ops/learned_score.py",
        "self.bias is None and self.softcap is None",
        "self.bias is None",
        ["tests/mechanisms/test_softcap.py"],
    ),
    Bug(
        "weight decay shrinks the decay rates of a wrapped Mamba",
        "mechanisms/short_convolution.py",
        "undecayed=inner.undecayed,",
        "",
        ["tests/training/test_decayed_parameters.py"],
    ),
    Bug(
        "GEGLU gates with SiLU",
        "ops/layer.py",
        '"geglu": gelu',
        '"geglu": silu',
        ["tests/modules/test_block.py"],
    ),
    Bug(
        "partial rotary with the frequencies of the whole head",
        "ops/position/rotary.py",
        "rate = frequencies(x.shape[1], base, dtype)",
        "rate = frequencies(2 * x.shape[1], base, dtype)[: x.shape[1] // 2]",
        ops("position", "rotary_scaling"),
    ),
    Bug(
        "YaRN interpolates the short wavelengths",
        "ops/position/scaling.py",
        "frequencies * (1 - share) + frequencies / self.factor * share",
        "frequencies * share + frequencies / self.factor * (1 - share)",
        ops("rotary_scaling"),
    ),
    Bug(
        "YaRN's attention factor on the queries' side of a score only",
        "ops/position/scaling.py",
        "return 0.1 * math.log(self.factor) + 1 if",
        "return math.sqrt(0.1 * math.log(self.factor) + 1) if",
        ops("rotary_scaling"),
    ),
    Bug(
        "QK-norm with the scale of the queries for both",
        "modules/head_projections.py",
        'self._normed(projected["k"], self.k_norm)',
        'self._normed(projected["k"], self.q_norm)',
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "the gate before the norm of the heads",
        "modules/head_projections.py",
        "if self.layer.norm_after_gate:",
        "if True:",
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "value heads in the order of a tile",
        "modules/head_projections.py",
        "jnp.repeat(x, self.repeats, axis=1)",
        "jnp.tile(x, (1, self.repeats, 1))",
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "the short convolution forgets one row while decoding",
        "modules/causal_convolution.py",
        "rows[x.shape[0] :]",
        "rows[x.shape[0] :].at[:1].set(0)",
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "padding enters the short convolution",
        "modules/head_projections.py",
        "rows if keep is None else zero_where_padded(keep, rows), before",
        "rows, before",
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "the residual reads its own values twice",
        "modules/head_projections.py",
        'own * projected["v"] + other * first',
        'own * projected["v"] + other * projected["v"]',
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "one dropout mask for all heads",
        "modules/attention.py",
        'jax.random.split(fold_key(key, "weights"), self._head_axes)',
        'jnp.broadcast_to(fold_key(key, "weights"), self._head_axes)',
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "every layer has the positions of the first",
        "modules/position/by_layer.py",
        'f"encoding_{n % self.count}"',
        '"encoding_0"',
        ["tests/modules/test_multi_head.py"],
    ),
    Bug(
        "latent attention decodes with the scale of the cached width",
        "modules/latent_attention.py",
        "if mechanism.score is scaled_dot else 1.0",
        "if mechanism.score is not scaled_dot else 1.0",
        ["tests/modules/test_latent_attention.py"],
    ),
    Bug(
        "the shared key of latent attention is not rotated while decoding",
        "modules/latent_attention.py",
        "            q, shared = rotate(q)",
        "            q, _ = rotate(q)",
        ["tests/modules/test_latent_attention.py"],
    ),
]


def plant(bug, folder):
    """Copies the project into a folder and puts the bug into the copy."""
    for name in ("attnlab", "tests"):
        copytree(ROOT / name, folder / name, ignore=ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    path = folder / "attnlab" / bug.file
    text = path.read_text()
    if text.count(bug.right) < 1:
        raise ValueError(f"{bug.name}: {bug.file} no longer holds {bug.right!r}")
    path.write_text(text.replace(bug.right, bug.wrong))


def hunt(bug):
    """Returns (bug, whether a test caught it, the name of that test or the reason, seconds)."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        plant(bug, Path(folder))
        command = [sys.executable, "-m", "pytest", *OPTIONS, *bug.tests]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    failed = [line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    caught = done.returncode == 1 and bool(failed)
    why = failed[0].split("::")[-1] if caught else f"pytest answered {done.returncode}"
    return bug, caught, why, time.perf_counter() - began


def main(words):
    """Runs the bugs whose names contain one of the words, or all bugs. Returns whether any bug was missed."""
    chosen = [bug for bug in BUGS if not words or any(word in bug.name for word in words)]
    caught = 0
    with ThreadPoolExecutor(2) as pool:
        for bug, found, why, seconds in pool.map(hunt, chosen):
            caught += found
            print(f"{'caught' if found else 'MISSED'}  {bug.name:52}  {why}  ({seconds:.0f} s)", flush=True)
    print(f"{caught} of {len(chosen)} caught")
    return caught != len(chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
