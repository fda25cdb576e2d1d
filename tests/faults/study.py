"""The study that `attnlab run` trains in tests that kill or stop processes: the tiny experiment.

python -m attnlab run tests/faults/study.py
"""

from attnlab.lab.study.study import Study
from attnlab.models import MODELS
from tests.faults.tiny import TINY

MODELS["follower"] = TINY.model
study = Study(TINY, name="tiny", question="Does the same command go on to the same bits?")
