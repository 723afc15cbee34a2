"""Every error that the lab raises on purpose, and the exit code that each one ends in.

A message is one sentence that names the place and the remedy. This module must not import anything
and must not print: the command line decides how an error is shown.
"""


class LabError(Exception):
    """Base of all errors that a user may meet. `exit_code` is what the command line exits with."""

    exit_code = 70

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it: the sentence, without the lines of code that led to it (IPython's protocol)."""
        return [f"{type(self).__name__}: {self}"]


class InvalidAction(LabError):
    """A simulator was asked for an action that is not enabled in its state."""

    exit_code = 64


class InvalidInput(LabError):
    """A file, an option or a combination of options is not usable; the message says which and what to do."""

    exit_code = 64


class ServiceUnavailable(LabError):
    """Something outside the lab that it needs is missing or broken: Java, a browser, a broker, a database."""

    exit_code = 69


class JobFailed(LabError):
    """A streaming job did not do what the scenario asked: a failpoint that was never reached, a query that failed."""

    exit_code = 1


class Cancelled(LabError):
    """Somebody stopped a run on purpose before it was over."""

    exit_code = 130


class MissingSolution(LabError):
    """An exercise was checked before it was attempted."""

    exit_code = 1


class GradingError(LabError):
    """Grading itself could not be carried out; never a statement about a learner's answer."""

    exit_code = 70
