"""The report: one HTML page that says which columns explain the target, and how far to trust it."""

from blockl0.report.collect import Report, make_report

__all__ = ["Report", "make_report"]
