"""What a notebook asks of its machine: prerequisites, a Spark session, and the pieces of a job in one picture."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labkit.spark.interactive import Session
    from labkit.teach.cards import Findings
    from labkit.view.pieces import Pieces


def doctor() -> "Findings":
    """What this machine has and lacks, one finding a prerequisite."""
    from labkit.host.doctor import examine
    from labkit.teach.cards import Findings

    return Findings(examine())


def pieces() -> "Pieces":
    """The pieces of a streaming job in one picture: who reads, computes and writes, and what a crash leaves."""
    from labkit.view.pieces import Pieces

    return Pieces()


def spark() -> "Session":
    """A Spark session in this kernel, to try things with: Java is found, logs are quiet, and it ends with the kernel.

    Raises `ServiceUnavailable` when there is no usable Java.
    """
    from labkit.spark.interactive import interactive_session

    return interactive_session()
