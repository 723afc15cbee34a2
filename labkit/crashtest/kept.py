"""Writes the files that a test leaves behind: report, pages, badge, and a picture of the weakest run."""

import json
from pathlib import Path

from labkit.crashtest.page import certificate, page
from labkit.crashtest.report import Report


def keep(report: Report, out: Path) -> None:
    """Write the report of a crash test in every format (text, JSON, HTML, badge) into the folder `out`."""
    (out / "report.txt").write_text(report.text() + "\n", encoding="utf-8")
    (out / "report.json").write_text(json.dumps(report.to_json(), indent=2), encoding="utf-8")
    (out / "report.html").write_text(page(report), encoding="utf-8")
    (out / "certificate.html").write_text(certificate(report), encoding="utf-8")
    (out / "badge.svg").write_text(report.badge(), encoding="utf-8")
    if report.picture:
        (out / "weakest.svg").write_text(report.picture, encoding="utf-8")
