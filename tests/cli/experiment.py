"""A small experiment file for the tests of the command line, and a function that runs a command."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = "experiments/small.py"
EXPERIMENT = '''"""Softmax against linear, small.

    attnlab run small.py
"""
from attnlab.lab.study import Experiment, Study
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Transformer
from attnlab.tasks import Reverse
from attnlab.training.config import Train

study = Study(
    Experiment(Reverse(), Transformer(width=16, heads=2), Train(steps=20)),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
    "which?",
    quick={"train.steps": 2},
)
'''


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def run_process(command, folder, **settings):
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | settings
    return subprocess.run(
        [sys.executable, "-m", "attnlab", *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
