"""Says in one sentence what the user's code raised, without the many lines that Spark adds to it."""

import re

from labkit.spark.queries import reason

_RAISED = re.compile(r"(?P<name>[A-Za-z_][\w.]*): (?P<text>.*)")
"""A pattern for the last line of a Python traceback, which has the error's name and text and is not indented."""


def sentence_of(error: Exception) -> str:
    """Return a sentence, of at most 400 characters, on an error that the user's code raised."""
    _, traceback, text = str(error).partition("Traceback (most recent call last)")
    for line in text.splitlines() if traceback else []:
        if raised := _RAISED.fullmatch(line):
            sentence = f"{raised['name'].rpartition('.')[2]}: {raised['text']}"
            return (sentence + _cause_in_java(text.partition(line)[2]))[:400]
    return reason(error)[:300]


def _cause_in_java(text: str) -> str:
    """Return the JVM's exception and its root cause from the text of a Py4J error; empty if there is none."""
    raised = [line[2:] for line in text.splitlines() if line.startswith(": ")][:1]
    causes = [
        line.strip().removeprefix("Caused by: ")
        for line in text.splitlines()
        if line.lstrip().startswith("Caused by: ") and raised
    ]
    sentence = "; caused by ".join(dict.fromkeys([*raised, *causes[-1:]]))
    return f" {sentence}" if sentence else ""
