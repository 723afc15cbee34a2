"""Writes an autograder for Gradescope that only reports the grades that labkit has computed.

Gradescope imports no table of grades: it reads the points of a programming assignment from the file `results.json` of
the assignment's autograder. So this autograder looks up the submission's number and copies its stored grade into this
file. Source: https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType

from labkit.grading.platforms import Platform
from labkit.grading.rules import Rules
from labkit.grading.scoring import Gradebook, Row, Score

_SETUP = """#!/usr/bin/env bash
apt-get install -y python3
"""
_RUN = """#!/usr/bin/python3 -I
import json, pathlib, shutil, sys

number = json.loads(pathlib.Path("/autograder/submission_metadata.json").read_text())["id"]
grade = pathlib.Path("/autograder/source/results", f"{number}.json")
if not grade.exists():
    sys.exit(f"Submission {number} has no grade yet; your instructor knows.")
shutil.copy(grade, "/autograder/results/results.json")
"""
_FIXED: Mapping[str, str] = MappingProxyType({"setup.sh": _SETUP, "run_autograder": _RUN})


def autograder(book: Gradebook, rules: Rules, doubts: list[str]) -> dict[str, str]:
    """Return the files of a Gradescope autograder that reports labkit's grades, as a dict from file name to text.

    A submission with unknown points gets no result. A submission whose authors have different points gets none either,
    because Gradescope stores one score per submission; a question for the instructor is then added to `doubts`.
    """
    authors: dict[str, list[Row]] = defaultdict(list)
    for row in book.rows:
        for record in row.records:
            if record.platform == Platform.GRADESCOPE and record.upload and row not in authors[record.upload]:
                authors[record.upload].append(row)
    files = dict(_FIXED)
    for upload, rows in authors.items():
        if len({row.total for row in rows}) > 1:
            doubts.append(
                f"{upload}: {', '.join(row.name for row in rows)} have different points, but Gradescope knows one "
                "score for a submission; enter these points there by hand."
            )
        elif not any(row.unsettled for row in rows):
            files[f"results/{upload.removeprefix('submission_')}.json"] = _results(rows[0], rules)
    return files


def _results(row: Row, rules: Rules) -> str:
    tests = [
        {
            "name": f"{name}: {score.exercise.title}",
            "score": round((score.points or 0) * rules.weight(name), 4),
            "max_score": score.exercise.points * rules.weight(name),
            "output": _words(score),
        }
        for name, score in row.scores.items()
        if not score.left_out
    ]
    # Late penalties and scaling apply to the sum, and Gradescope prefers this score to the sum of the tests.
    results = {"score": row.total, "output": "\n".join(row.notes), "visibility": "visible", "tests": tests}
    return json.dumps(results, indent=1)


def _words(score: Score) -> str:
    shown = score.item.shown if score.item is not None and not score.by_hand else ""
    return "\n".join(filter(None, (shown, *score.hand.comments)))
