"""Write a report: one self-contained page about the best subsets of a table."""

from blockl0.app.report import make_report

__all__ = ["make_report"]
