"""Fault-injection tests: kills, signals, damaged files, invalid input. `python -m tests.faults` runs the full forms."""

NAMES = (
    "kill", "writes", "flips", "resume", "sigterm", "numbers", "configurations", "folders", "fuzz", "hostile",
    "trainers", "endurance", "surroundings",
)  # fmt: skip
