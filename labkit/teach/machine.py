"""The functions of `lab` about this machine and Spark: prerequisites, a picture of a job's parts, a Spark session."""

from typing import TYPE_CHECKING

from labkit.view.card import BAD, GOOD, Card, Cell, Html, OnCard, fold, table

if TYPE_CHECKING:
    from labkit.host.doctor import Finding
    from labkit.spark.interactive import Session
    from labkit.view.pieces import Pieces


class Findings(OnCard, list["Finding"]):
    """The results of the checks of this machine by `lab.doctor`, one for each program or package that the lab needs.

    A notebook displays them as a card: what is missing, and how to install it.
    """

    def card(self) -> Card:
        """Return a card that first lists what this machine lacks, with remedies, and then what is already installed."""
        missing = [each for each in self if not each.ok]
        needed = [each for each in missing if each.required]
        word = "not yet" if needed else "ready"
        summary = (
            f"{len(needed)} of {len(self)} things are missing that the lab needs."
            if needed
            else "This machine has everything that the lab needs."
        )
        rows = [
            (each.name, Cell("missing", BAD) if each.required else "optional", each.remedy or each.detail)
            for each in [*needed, *(each for each in missing if not each.required)]
        ]
        ready = [each for each in self if each.ok]
        return Card(
            word,
            table(("", "", "what to do"), rows) if rows else Html(),
            fold(f"Already installed: {len(ready)}", table(("", ""), [(each.name, each.detail) for each in ready])),
            title="Is this machine ready?",
            tone=BAD if needed else GOOD,
            under=summary,
            plain=[
                summary,
                *(f"  {'MISSING' if each.required else 'optional'} {each.name}: {each.remedy}" for each in missing),
            ],
        )


def doctor() -> Findings:
    """Check that this machine has all that labkit needs; return a card with what is missing and how to install it."""
    from labkit.host.doctor import examine

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
