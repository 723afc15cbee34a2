"""Turn a verdict into parts of a result card: the large word, the judge's counts below it, and the reason."""

from collections.abc import Mapping

from labkit.core.verdict import Guarantee, Verdict
from labkit.view.card import BAD, DIM, GOOD, counted, plural

TONES = {Guarantee.EXACTLY_ONCE: GOOD, Guarantee.UNKNOWN: DIM}
WORDS = {Guarantee.NONE: "no guarantee"}
"""Other words for guarantees whose own names say too little when they stand alone."""

_ALWAYS = {"lost": "lost", "duplicate": "twice", "regression": "jump back|jumps back"}
_ONLY_SOME = {
    "unexpected": "unexplained",
    "aborted_read": "read of an aborted transaction|reads of aborted transactions",
    "precommitted_read": "read too early",
    "fractured_read": "read without the rest of its batch",
    "unseen": "hidden by an open transaction",
}


def word(guarantee: Guarantee) -> str:
    """Return the name of a guarantee, such as `exactly-once`, as the large word on a result card."""
    return WORDS.get(guarantee, guarantee.value)


def tone(guarantee: Guarantee) -> str:
    """Return the tone of a guarantee on a card: good, bad or dim. The tone decides the colour."""
    return TONES.get(guarantee, BAD)


def counts(verdict: Verdict) -> str:
    """Return the numbers of anomalies in a verdict as text, such as `0 lost, 3 twice, 1 jump back`."""
    results = {message: len(getattr(verdict, name)) for name, message in _ALWAYS.items()}
    results |= {message: len(getattr(verdict, name)) for name, message in _ONLY_SOME.items() if getattr(verdict, name)}
    return counted(results)


def rows(verdict: Verdict) -> str:
    """Return the number of rows in the output as text, such as `6 rows`."""
    return f"{verdict.rows:,} {plural('row|rows', verdict.rows)}"


def why(verdict: Verdict) -> str:
    """Return one line with the reason for the verdict's guarantee. Anomalies that were only temporary are left out."""
    return verdict.because.partition("; meanwhile")[0]


def in_columns(verdict: Verdict) -> Mapping[str, str]:
    """Return a verdict as a table row: a dict from column to text.

    The column `unexplained` is left out if the output has no unexpected rows.
    """
    unexplained = {"unexplained": f"{len(verdict.unexpected):,}"} if verdict.unexpected else {}
    return {
        "guarantee": word(verdict.guarantee),
        "lost": f"{len(verdict.lost):,}",
        "twice": f"{len(verdict.duplicate):,}",
        **unexplained,
        "jumps back": f"{len(verdict.regression):,}",
        "rows": f"{verdict.rows:,}",
    }
