"""The functions of `lab` about this machine and Spark: prerequisites, a picture of a job's parts, a Spark session."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labkit.spark.interactive import Session
    from labkit.teach.cards import Findings
    from labkit.view.pieces import Pieces


def doctor() -> "Findings":
    """Check this machine for everything that the lab needs, and return a card with what is missing and the remedy."""
    from labkit.host.doctor import examine
    from labkit.teach.cards import Findings

    return Findings(examine())


def pieces() -> "Pieces":
    """Return a picture of a streaming job's parts: who reads, computes and writes, and which data survives a crash."""
    from labkit.view.pieces import Pieces

    return Pieces()


def spark() -> "Session":
    """Start a Spark session in this kernel for experiments, with the Java that the lab finds and with quiet logs.

    The session ends with the kernel. Raises `ServiceUnavailable` if there is no usable Java.
    """
    from labkit.spark.interactive import interactive_session

    return interactive_session()
