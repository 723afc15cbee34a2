"""A verdict on a person's own rows in a sentence that quotes them: they have no offsets, and nobody knows their batches.

This module must not count: it words what `labkit.core.judge` has found.
"""

from collections.abc import Sequence
from typing import Any

from labkit.core.judge import Verdict
from labkit.crashtest.blackbox.expectation import SHOWN, text

COUNTED = {
    "lost": "{n} of {rows} row(s) got lost, as {row}",
    "duplicate": "{n} of {rows} row(s) came out twice or more, as {row}",
    "unexpected": "rows came out that nobody expected, as {row}",
}
MEANWHILE = {
    "regression": "{row} after a later row of its key",
    "aborted_read": "{row}, which was gone again later",
}


def because(verdict: Verdict, values: Sequence[Any], due: int) -> str:
    """Why the guarantee is what it is. `values`: the rows that are expected, in their order; so many of them are due."""
    why = _said(verdict, COUNTED, values)
    meanwhile = _said(verdict, MEANWHILE, values)
    if why:
        said = f"{verdict.guarantee}, because {' and '.join(why)}"
    else:
        said = f"{verdict.guarantee}, because each of {due} row(s) that are due came out once"
    if meanwhile:
        said += f"; meanwhile the reader saw {' and '.join(meanwhile)}"
    return said


def _said(
    verdict: Verdict, sentences: dict[str, str], values: Sequence[Any]
) -> list[str]:
    found = []
    for anomaly, sentence in sentences.items():
        places = getattr(verdict, anomaly)
        if places:
            case = verdict.witnesses[anomaly][0]
            row = text(values[case.offset]) if case.offset >= 0 else case.key
            short = row.removesuffix(f"/{case.offset}")[:SHOWN]
            found.append(sentence.format(n=len(places), rows=len(values), row=short))
    return found
