"""The errors that the lab raises on purpose, each with the exit code of the command line.

A message is one sentence that says what is wrong and what to do. The command line decides how it shows an error.
"""


class LabError(Exception):
    """Base class of all errors that a user may meet. The command line exits with `exit_code`."""

    exit_code = 70

    def _render_traceback_(self) -> list[str]:
        """Return the lines that a notebook shows: the sentence alone, without a traceback (IPython's protocol)."""
        return [f"{type(self).__name__}: {self}"]


class InvalidAction(LabError):
    """The caller asked a simulator for an action that its state does not enable."""

    exit_code = 64


class InvalidInput(LabError):
    """A file, an option or a combination of options is unusable; the message names it and says what to do."""

    exit_code = 64


class ServiceUnavailable(LabError):
    """Something outside of labkit is missing or broken: Java, a browser, a Kafka broker, a database, a package."""

    exit_code = 69


class MissingExtra(ServiceUnavailable):
    """An optional package is not installed; the message names the extra of labkit that installs it."""


class NeedsInstallation(ServiceUnavailable):
    """A labkit that runs inside a browser lacks this feature; the message says how to install labkit on a computer."""


class JobFailed(LabError):
    """A streaming job did not do what the scenario asked for: it never reached a failpoint, or its query failed."""

    exit_code = 1


class Cancelled(LabError):
    """Somebody stopped a run on purpose before it ended."""

    exit_code = 130


class MissingSolution(LabError):
    """A learner asked for a check of an exercise, but has not written an answer yet."""

    exit_code = 1


class GradingError(LabError):
    """Grading itself failed. This error never says anything about a learner's answer."""

    exit_code = 70
