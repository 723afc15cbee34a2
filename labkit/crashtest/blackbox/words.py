"""Put a verdict into a sentence that quotes the user's own rows, since these have no offsets and no batches."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from labkit.core.explanation import Explanation
from labkit.core.judge import Verdict
from labkit.crashtest.blackbox.expectation import SHOWN, text

COUNTED = {
    "lost": "{n} of {rows} row(s) got lost, as {row}",
    "duplicate": "{n} of {rows} row(s) came out twice or more, as {row}",
    "unexpected": "rows came out that nobody expected, as {row}",
}
MEANWHILE = {"regression": "{row} after a later row of its key", "aborted_read": "{row}, which was gone again later"}


def because(verdict: Verdict, values: Mapping[int, Any], due: int) -> str:
    """Return the guarantee and the reason for it as a sentence.

    `values` are the expected rows by offset; `due` is the number of rows that should be there at the end.
    """
    reasons = _reasons(verdict, COUNTED, values)
    meanwhile = _reasons(verdict, MEANWHILE, values)
    if reasons:
        sentence = f"{verdict.guarantee}, because {' and '.join(reasons)}"
    else:
        sentence = f"{verdict.guarantee}, because each of {due} row(s) that are due came out once"
    if meanwhile:
        sentence += f"; meanwhile the reader saw {' and '.join(meanwhile)}"
    return sentence


_ROW = re.compile(
    r"offset (\d+) \((?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\") = -?\d+\)"
    r"(, written by attempt \d+ of batch -?\d+,)?"
)
"""A pattern for a record in an explanation: its offset and value, and the batch and attempt that wrote it."""


def in_their_rows(explanation: Explanation, values: Mapping[int, Any]) -> Explanation:
    """Return the explanation with the user's rows in place of the numbers that the test assigned to them."""

    def quoted(match: re.Match[str]) -> str:
        offset = int(match[1])
        return text(values[offset])[:SHOWN] if offset in values else match[0]

    return replace(explanation, refuted=_ROW.sub(quoted, explanation.refuted))


def _reasons(verdict: Verdict, sentences: dict[str, str], values: Mapping[int, Any]) -> list[str]:
    clauses = []
    for anomaly, sentence in sentences.items():
        places = getattr(verdict, anomaly)
        if places:
            case = verdict.witnesses[anomaly][0]
            row = text(values[case.offset]) if case.offset in values else case.key
            short = row.removesuffix(f"/{case.offset}")[:SHOWN]
            clauses.append(sentence.format(n=len(places), rows=len(values), row=short))
    return clauses
