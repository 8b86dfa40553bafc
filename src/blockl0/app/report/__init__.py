"""The report: an HTML page on which columns explain the target, and how far to trust that."""

from blockl0.app.report.collect import Report, make_report

__all__ = ["Report", "make_report"]
