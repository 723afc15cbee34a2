"""The errors that the lab raises on purpose, each with the exit code of the command line.

A message is one sentence that says what is wrong and what to do. The command line decides how it shows an error.
"""


class LabError(Exception):
    """Base class of the errors that labkit raises on purpose. The command line exits with `exit_code`."""

    exit_code = 70

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints for a labkit error: its message, without the traceback."""
        return [f"{type(self).__name__}: {self}"]


class InvalidAction(LabError):
    """Raised if a caller asks for an action that is impossible now, such as a simulator's step in the wrong state."""

    exit_code = 64


class InvalidInput(LabError):
    """Raised for a file, an option or a combination of options that cannot be used; the message says what to do."""

    exit_code = 64


class ServiceUnavailable(LabError):
    """Raised if something outside of labkit is missing or broken, such as Java, a Kafka broker or a database."""

    exit_code = 69


class MissingExtra(ServiceUnavailable):
    """Raised if an optional package is not installed; the message names its extra, such as `labkit[spark]`."""


class NeedsInstallation(ServiceUnavailable):
    """Raised if labkit runs in a browser's Python and lacks a feature there; the message says how to install labkit."""


class JobFailed(LabError):
    """Raised if a streaming job did not run as planned: it never reached its crash point, or its query failed."""

    exit_code = 1


class Cancelled(LabError):
    """Raised if somebody stopped a run on purpose before it ended."""

    exit_code = 130


class MissingSolution(LabError):
    """Raised if a learner asks for a check of an exercise, but has not written an answer yet."""

    exit_code = 1


class GradingError(LabError):
    """Raised if grading itself failed, for example on a full disk. This says nothing about a learner's answer."""

    exit_code = 70
