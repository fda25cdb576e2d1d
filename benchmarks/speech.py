"""The cost of a training step on speech as recordings grow longer: attention to a window, compared with all frames.

Claim: with windows, a step's time and memory grow linearly with the number of frames, which means by an exponent of at
most 1.3.

Command: python benchmarks/speech.py [--save]      (three minutes)

The script measures the encoder of experiments/speech_window.py, with one recording per step, its loss and all
gradients, float32. A frame is 10 ms: 512 of them are five seconds, 4,096 are forty. Exponents are fitted over all
lengths, and judged by the upper end of their 95% intervals.

Expected: the steps of windows grow about linearly, those of full attention faster. Measured (AMD EPYC, two cores,
without other load), as exponents of time with their 95% intervals: windows of 17 T^1.03 (.88 to 1.17), of 65 1.03 (.92
to 1.14), of 257 1.05 (.96 to 1.14), of 1,025, which is all of the two shorter lengths, 1.50 (1.39 to 1.61), all frames
1.79 (1.67 to 1.91). For memory all windows 1.00 (.93 to 1.07), all frames 1.65. At 2,048 frames windows of 17, 65, 257
and 1,025 take 117, 115, 185 and 408 ms, all frames 630; 56 MB each, and 304. At 4,096 they take 228, 227, 350 and 927
ms and 117 MB, all frames 2.4 s and 1,148 MB.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.growth import growth
from attnlab.analysis.measure import Program, compiled, quartiles, timed
from attnlab.bench.script import claim_growth, finish, options, say
from attnlab.bench.table import grows
from attnlab.console.format import duration
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.mechanisms.window import Local
from attnlab.models import Classifier
from attnlab.modules.position import POSITIONS
from attnlab.tasks.base.shapes import Classes, Frames

BANDS, CLASSES = 40, 11
MODEL = Classifier(width=64, heads=4, layers=3, activation="gelu", position=POSITIONS["rotary"])
MOST = 1.3  # the largest exponent that counts as linear: a step also has costs other than attention


def windows(frames: int) -> Mechanism:
    """Return attention to the given number of frames around each frame."""
    side = (frames + 1) // 2
    return Local(side, side, block=32)


NARROW = {f"window of {w}": windows(w) for w in (17, 65)}
MECHANISMS = NARROW | {f"window of {w}": windows(w) for w in (257, 1025)} | {"all frames": Softmax()}


def step(mechanism: Mechanism, T: int) -> Program:
    """The loss of one recording of T frames and its gradient."""
    model = replace(MODEL, mechanism=mechanism).create(jax.random.key(0), Classes(Frames(BANDS, T), CLASSES, each=True))
    random = np.random.default_rng(T)
    source = random.standard_normal((T, BANDS)).astype(np.float32)
    label = random.integers(CLASSES, size=T).astype(np.int32)

    def loss(model, source, label):
        scores = jax.nn.log_softmax(model(source))
        return -jnp.take_along_axis(scores, label[:, None], axis=1).mean()

    return compiled(jax.value_and_grad(loss), model, source, label)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, [512, 1024, 2048, 4096], 5)
    seconds: dict[str, dict[int, list[float]]] = {name: {} for name in MECHANISMS}
    memory: dict[str, dict[int, int | None]] = {name: {} for name in MECHANISMS}
    for T in chosen.lengths:
        programs = {name: step(mechanism, T) for name, mechanism in MECHANISMS.items()}
        for name, values in timed(programs, chosen.repeat).items():
            seconds[name][T], memory[name][T] = values, programs[name].memory
            say(f"{name}, T={T}: {duration(quartiles(values).median)}, {(programs[name].memory or 0) / 1e6:.0f} MB")
    every = len(chosen.lengths)
    exponents = {name: growth(values, largest=every) for name, values in seconds.items()}
    room = {name: growth({T: [x] for T, x in values.items() if x}, every) for name, values in memory.items()}
    for name in MECHANISMS:
        print(f"{name:<14} seconds grow as T^{grows(exponents[name])}, memory as T^{grows(room[name])}")
    kinds = {"seconds": exponents, "memory": room}
    claims = [
        claim_growth(f"growth of the {what} of {name}", found[name], most=MOST)
        for what, found in kinds.items()
        for name in NARROW
    ]
    finish(__file__, chosen.save, claims, seconds=seconds, memory=memory)


if __name__ == "__main__":
    main()
