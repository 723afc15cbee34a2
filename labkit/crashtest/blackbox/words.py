"""Words a verdict on a user's own rows in a sentence that quotes them: these rows have no offsets and no known batches.

This module must not count: it words the findings of `labkit.core.judge`.
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
    """The reason for the guarantee. `values`: the expected rows, in their order; `due`: how many of them are due."""
    reasons = _said(verdict, COUNTED, values)
    meanwhile = _said(verdict, MEANWHILE, values)
    if reasons:
        sentence = f"{verdict.guarantee}, because {' and '.join(reasons)}"
    else:
        sentence = f"{verdict.guarantee}, because each of {due} row(s) that are due came out once"
    if meanwhile:
        sentence += f"; meanwhile the reader saw {' and '.join(meanwhile)}"
    return sentence


def _said(
    verdict: Verdict, sentences: dict[str, str], values: Sequence[Any]
) -> list[str]:
    clauses = []
    for anomaly, sentence in sentences.items():
        places = getattr(verdict, anomaly)
        if places:
            case = verdict.witnesses[anomaly][0]
            row = text(values[case.offset]) if case.offset >= 0 else case.key
            short = row.removesuffix(f"/{case.offset}")[:SHOWN]
            clauses.append(sentence.format(n=len(places), rows=len(values), row=short))
    return clauses
