"""The report of a study as one page: its results, and how certain they are. It reads only run folders."""

from attnlab.lab.reporting.page import report

__all__ = ["report"]
