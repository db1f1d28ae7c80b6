"""Reports: a page, metrics.json and a table from runs (build_report), one trace for a terminal (render_trace)."""

from engine.report.report import Report, build_report
from engine.report.run_data import RunData
from engine.report.terminal import render_trace, trace_text

__all__ = ["Report", "RunData", "build_report", "render_trace", "trace_text"]
