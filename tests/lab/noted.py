"""A progress that remembers what a run notes."""

from attnlab.lab.progress import Silent


class Noted(Silent):
    """Holds the lines that were noted in `notes`."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)
