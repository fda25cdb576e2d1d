"""A `Progress` that records the notes of a run."""

from attnlab.training.progress import Silent


class Noted(Silent):
    """Records notes in `notes`."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)
