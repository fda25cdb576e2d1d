"""An example of what `inspect` returns for a small run."""

NAN = float("nan")
HEAD = {
    "rank": 1.5,
    "entropy": 0.5,
    "relative_entropy": 0.456,
    "reach": 0.75,
    "from_softmax": 0.25,
    "empty": 0,
    "signed": True,
    "least_total": 3e-6,
}
NONE = dict.fromkeys(("rank", "entropy", "relative_entropy", "reach", "from_softmax", "least_total"), NAN) | {
    "empty": 2,
    "signed": False,
}
MAP = [[0.5, 0.25, 0.25], [0.0, -0.5, 1.5]]


def found(steps=(6, 1200)):
    """Returns the result for checkpoints at these steps, compared with another run.

    The encoder has two heads, and the cross-attention has one.
    """
    sides = {"rows": ["b", "∎"], "columns": ["a", " ", "c"], "rank": 2, "entropy": 1.0986}
    encoder = {"mechanism": "linear", "mechanisms": ["linear"], "softmax": False, "divides": True}
    encoder |= {"statistics": [[HEAD, NONE]], "layers": [[MAP, [[0.0] * 3] * 2]]}
    plain = HEAD | {"signed": False, "from_softmax": 0.0}
    cross = {
        "mechanism": "softmax",
        "mechanisms": ["softmax"],
        "softmax": True,
        "divides": False,
        "statistics": [[plain]],
        "layers": [[MAP]],
    }
    ends = {"encoder": {"heads": [[0.2, 0.3]], "mean": [0.1]}, "cross": {"heads": [[0.5]], "mean": [0.4]}}
    return {
        "answer": "b",
        "step": steps[-1],
        "steps": 1200,
        "notes": [],
        "examples": 8,
        "attentions": {"encoder": sides | encoder, "cross": sides | cross},
        "training": [_row(step, n) for n, step in enumerate(steps)],
        "distance": {
            "run": "small/two",
            "notes": ["decoder is not compared: layers × heads are none here and 1 × 2 in the other run"],
            "attentions": ends,
        },
    }


def _row(step, n):
    statistics = {"rank": [1.2 + n / 10], "entropy": [0.4], "relative_entropy": [0.4 - n / 10], "reach": [0.5 + n / 10]}
    statistics["from_softmax"] = [0.2 - n / 10]
    parts = {"encoder 1 attention": (4.0, 5e-5 if n else 0.5), "output": (2.0, 0.1 + n / 10)}
    return {
        "step": step,
        "loss": 2.0 - n,
        "scores": {"encoder": [1.0 + 2 * n], "cross": [NAN]},
        "parts": {name: {"parameters": here, "gradient": back} for name, (here, back) in parts.items()},
        "statistics": {"encoder": statistics, "cross": statistics},
    }


FOUND = found()
