"""The parts of a card that say a verdict: the large word, the counts under it, and how it reads in one line.

What is counted was counted by the judge.
"""

from collections.abc import Mapping

from labkit.core.verdict import Guarantee, Verdict
from labkit.view.card import BAD, DIM, GOOD, counted, plural

TONES = {Guarantee.EXACTLY_ONCE: GOOD, Guarantee.UNKNOWN: DIM}
WORDS = {Guarantee.NONE: "no guarantee"}
"""A guarantee whose own name says too little in large letters."""

_ALWAYS = {"lost": "lost", "duplicate": "twice", "regression": "jump back|jumps back"}
_ONLY_SOME = {
    "unexpected": "unexplained",
    "aborted_read": "read of an aborted transaction|reads of aborted transactions",
    "precommitted_read": "read too early",
    "fractured_read": "read without the rest of its batch",
    "unseen": "hidden by an open transaction",
}


def word(guarantee: Guarantee) -> str:
    """The guarantee as a large word."""
    return WORDS.get(guarantee, guarantee.value)


def tone(guarantee: Guarantee) -> str:
    """Whether the word is a good one."""
    return TONES.get(guarantee, BAD)


def counts(verdict: Verdict) -> str:
    """`0 lost, 3 twice, 1 jump back`, and what else there was."""
    found = {said: len(getattr(verdict, name)) for name, said in _ALWAYS.items()}
    found |= {said: len(getattr(verdict, name)) for name, said in _ONLY_SOME.items() if getattr(verdict, name)}
    return counted(found)


def rows(verdict: Verdict) -> str:
    """`6 rows`."""
    return f"{verdict.rows:,} {plural('row|rows', verdict.rows)}"


def why(verdict: Verdict) -> str:
    """Why the guarantee is what it is, without what was seen meanwhile: the counts and the reader's line say that."""
    return verdict.because.partition("; meanwhile")[0]


def in_columns(verdict: Verdict) -> Mapping[str, str]:
    """What a comparison shows of a verdict, by the name of the column."""
    return {
        "guarantee": word(verdict.guarantee),
        "lost": f"{len(verdict.lost):,}",
        "twice": f"{len(verdict.duplicate):,}",
        "jumps back": f"{len(verdict.regression):,}",
        "rows": f"{verdict.rows:,}",
    }
