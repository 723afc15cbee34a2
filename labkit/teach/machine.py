"""The functions of `lab` about this machine and Spark: prerequisites, a picture of a job's parts, a Spark session."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labkit.spark.interactive import Session
    from labkit.teach.cards import Findings
    from labkit.view.pieces import Pieces


def doctor() -> "Findings":
    """Check that this machine has all that labkit needs; return a card with what is missing and how to install it."""
    from labkit.host.doctor import examine
    from labkit.teach.cards import Findings

    return Findings(examine())


def pieces() -> "Pieces":
    """Return a picture of a streaming job: which processes read, compute and write, and which data survive a crash."""
    from labkit.view.pieces import Pieces

    return Pieces()


def spark() -> "Session":
    """Start a Spark session in this kernel, for experiments, with a Java installation that labkit finds.

    The session ends with the kernel. Raises `ServiceUnavailable` if there is no usable Java.
    """
    from labkit.spark.interactive import interactive_session

    return interactive_session()
