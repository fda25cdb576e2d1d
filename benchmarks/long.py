"""A training step on long byte text, by mechanism: steps per second, memory, and the growth of both.

Claim: at 4,096 bytes linear attention and windows make at least three times as many steps per second as dense softmax,
in at most a quarter of its memory, and the time of their steps grows as T^1.3 at most. Published, for a larger model on
TPU (Long Range Arena, Tay et al. 2021, table 2): linear 5.6 times, local 5.3, Performer 5.7, Linformer 5.5, BigBird
1.1, Reformer 0.8.

Command: python benchmarks/long.py --mechanisms linear window              (three minutes)
         python benchmarks/long.py --mechanisms reformer                   (two minutes)
         python benchmarks/long.py [--lengths 1024 2048 4096] [--save]     (of all; 13 minutes; docs/results.md)

The model is the whole model of the arena's byte text, but smaller: 2 layers of width 64, 4 heads, a vocabulary of 257,
two classes, one document per step. Training steps are those of `attnlab run`, four in one dispatch, in float32.
Documents have the full length. Every non-causal mechanism is measured. Their networks have widths that give them
softmax's 83,650 parameters within 2%. Two mechanisms learn something for each position. A Synthesizer leaves its
network a width of 4 at 4,096. Linformer (here of rank 4, with its own projections for each head) is larger by itself
from 2,048 on; its parameters are printed. Memory is the compiler's estimate. Growth is that of linear and windows, each
measured by itself, fitted over all of these lengths and twice the longest, and judged by the upper end of its 95%
interval. `length.py` measures attention alone.

Expected: the last lines say which part of the claim holds on this machine. By the first command (AMD EPYC, two cores,
without other load) a step at 2,048 and 4,096 bytes takes dense softmax 495 and 1,850 ms, linear 56 and 125, windows 99
and 165. At 4,096 linear makes 14.6 and windows 11.3 times as many steps, in .044 and .041 of 1,312 MiB, and from 1,024
to 8,192 they grow as T^.80 (.75-.84) and T^.88 (.83-.93). At other times it was 12.4 and 11.7 times, 20 and 11, 14.0
and 9.4. The whole claim holds.
The third command, alone on the machine at such a time, took 13 minutes. As a fraction of softmax's time at 4,096 bytes
a step took: cosFormer .06, linear, DPFP and Nyström .07, Hedgehog, Sinkhorn and Performer .09, local-p .10, windows
.11, Longformer .13, strided .16, BigBird .20, blockwise softmax .31, ReBased and Taylor .36 and .42 (at another time
.22 and .25), Reformer .55, sigmoid .64, Synthesizer 1.08; Linformer .04, with 262,144 parameters more. The memory of
the others except sigmoid and Synthesizer is .04 to .2 of softmax's. Linear grew as T^.65 (.60-.69) then, windows as
T^.77 (.72-.81).
Reformer by its own command, without other load: 2.43 times softmax's time at 1,024 (2.40-2.57), 1.22 at 2,048 and .61
at 4,096 (.61-.62), in .115 of the memory. It has four rounds, each with as many buckets as the sequence has blocks of
64. They score three quarters of all pairs at 1,024 and a fifth at 4,096. It took 3.15, 1.71 and 1.24 times as long
while each of several heads stopped by itself, because all gradients were then copied for every block, and while each
pair's rounds were counted. Heads in parallel still take as many blocks each as the one with the fullest buckets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from attnlab.analysis.growth import Growth, growth
from attnlab.analysis.measure import Program, Quartiles, quartiles, timed, times_faster
from attnlab.bench.relative import Relative, relative_table
from attnlab.bench.script import claim, claim_growth, finish, options, say
from attnlab.bench.steps import steps
from attnlab.console.tables import print_table
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import matched
from attnlab.lab.study.study import Experiment, Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import MECHANISMS
from attnlab.models.classifier import Classifier
from attnlab.tasks.text.documents import Documents

NAMES = [name for name, mechanism in MECHANISMS.items() if mechanism.traits.non_causal]
CLAIMED = ("linear", "window")
BATCH = 1
STEPS = 4  # in one dispatch
RANK = 4


def experiments(length: int, names: Sequence[str]) -> dict[str, Experiment]:
    """Return the experiments by mechanism, at equal parameters; report those that cannot have so few parameters."""
    task = Documents(shortest=length, longest=length, valid_examples=1, test_examples=1)
    base, ledger, found = Experiment(task, Classifier(width=64, heads=4, layers=2, feedforward=128)), Ledger(), {}
    for name in names:
        mechanism = MECHANISMS[name].with_length(length)
        mechanism = replace(mechanism, rank=RANK) if hasattr(mechanism, "rank") else mechanism
        try:
            study = Study(base, over("model.mechanism", **{name: mechanism}), match="parameters")
            found |= matched(study, ledger).experiments
        except ValueError as error:
            found[name] = change(base, **{"model.mechanism": mechanism})
            say(f"T={length}, without equal parameters: {error}")
    return found


def compiled(length: int, names: Sequence[str]) -> dict[str, Program]:
    """Return the compiled training steps by mechanism."""
    return {
        name: steps(each.model, each.task.load(), BATCH, STEPS) for name, each in experiments(length, names).items()
    }


def grown(programs: Mapping[int, Program], repeat: int) -> Growth | None:
    """Return how the seconds of one mechanism's steps grow with T, fitted over all lengths."""
    # No other program is loaded: one that frees a gigabyte between two calls slows the next call.
    turns = timed({str(T): program for T, program in programs.items()}, repeat)
    return growth({T: turns[str(T)] for T in programs}, largest=len(programs))


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [1024, 2048, 4096], 3, NAMES)
    names = list(dict.fromkeys(["softmax", *chosen.mechanisms]))
    claimed = [name for name in CLAIMED if name in names]
    found: list[Relative] = []
    alone: dict[str, dict[int, Program]] = {name: {} for name in claimed}
    for T in sorted(chosen.lengths):
        programs = compiled(T, names)
        say(f"T={T}: {len(programs)} programs compiled")
        turns = timed(programs, chosen.repeat)
        unit = programs["softmax"].memory
        for name, program in programs.items():
            if name in alone:
                alone[name][T] = program
            memory = program.memory / unit if program.memory and unit else None
            times = times_faster(turns["softmax"], turns[name])
            found.append(Relative(name, "", T, tuple(each / STEPS for each in turns[name]), times, memory))
            rate = STEPS / quartiles(turns[name]).median
            say(f"T={T} {name:<18} {rate:8.2f} steps/s, {(program.memory or 0) / 2**20:8.0f} MiB")
    print_table(relative_table(found, "softmax", "a training step"))
    longest = max(chosen.lengths)
    fits = {}
    for name in claimed:
        fits[name] = grown(alone[name] | {2 * longest: compiled(2 * longest, [name])[name]}, 3 * chosen.repeat)
        say(f"{name}: growth measured up to T={2 * longest}")
    last = {each.name: each for each in found if longest == each.T}
    claims = []
    for name in claimed:
        times = last[name].times
        rate = Quartiles(1 / times.median, 1 / times.high, 1 / times.low)
        claims.append(claim(f"steps a second, {name} against softmax at {longest}", [rate], least=3.0))
        memory = last[name].memory
        if memory is not None:
            claims.append(claim(f"memory, {name} against softmax at {longest}", [memory], most=0.25))
        claims.append(claim_growth(f"growth of {name} with T", fits[name], most=1.3))
    grown_as = {name: fit and asdict(fit) for name, fit in fits.items()}
    measured = [asdict(each) for each in found]
    finish(__file__, chosen.save, claims, relative_to="softmax", measured=measured, growth=grown_as)


if __name__ == "__main__":
    main()
