"""The report: what a study says, with how sure one may be, as one page. It reads run folders and nothing else."""

from attnlab.lab.reporting.page import report

__all__ = ["report"]
