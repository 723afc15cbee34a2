"""Runs the command line. Every mistake of a user ends in one sentence and the right exit code, never in a traceback.

Exit codes: 0 done (and as expected), 1 a requested guarantee did not hold or a check failed, 2 unknown, 64 bad usage or
input, 69 Java, a service or an optional package is missing, 70 labkit's own fault.
"""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from labkit.core.errors import LabError
from labkit.core.extras import missing_extra
from labkit.host.processes import ENDS_WITH_PARENT

_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}

OWN_FAULT = 70
BAD_USAGE = 64
STOPPED = "stopped; nothing is left running"
GO_ON = {"run": "; to continue, use --resume FOLDER", "grade": "; to continue, run the same command again"}
"""How to continue an interrupted subcommand: the end of the message after Ctrl-C or SIGTERM."""


class Stopped(BaseException):
    """Raised on SIGTERM, SIGHUP or Ctrl-C, so that every open `with` block kills the processes that it started."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> NoReturn:
    """Run the command `labkit` with the arguments of this process, and exit."""
    if os.environ.pop(ENDS_WITH_PARENT, None):
        from labkit.host.processes.tether import end_with_parent

        end_with_parent()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup, SIGHUP stays ignored
            signal.signal(number, _stop)
    sys.exit(execute(sys.argv[1:]))


def execute(words: Sequence[str]) -> int:
    """Run `labkit` with these arguments and return its exit code. Errors become one sentence on standard error."""
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        return _run(words)
    except LabError as error:
        return _say(str(error), error.exit_code, debug=debug)
    except Stopped as stopped:
        message = f"{STOPPED}{GO_ON.get(_verb(words), '')}."
        return _say(message, 128 + stopped.number, debug=False)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _outside(error, debug=debug)
    except Exception as error:  # even after a bug, users see one sentence and no traceback
        return _unforeseen(error, debug=debug, verb=_verb(words))


def _verb(words: Sequence[str]) -> str:
    return words[0] if words and words[0].isidentifier() else ""


def _run(arguments: list[str]) -> int:
    from labkit.cli.app import command_line

    code = command_line().main(arguments, prog_name="labkit", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _say(sentence: str, code: int, *, debug: bool) -> int:
    if debug and sys.exc_info()[0] is not None:
        import traceback

        traceback.print_exc()
    print(f"labkit: {sentence}", file=sys.stderr)
    return code


def _unforeseen(error: Exception, *, debug: bool, verb: str = "") -> int:
    """Print an error that no other handler handles, and return its exit code.

    The code is 69 for a missing package, 64 for an error of the option parser, and 70 for a bug in labkit.
    """
    if isinstance(error, ImportError) and (missing := missing_extra(error)):
        return _say(str(missing), missing.exit_code, debug=debug)
    word = getattr(error, "format_message", None)
    if word is not None:
        from labkit.cli.app import VERBS

        more = f"labkit {verb} --help" if verb in VERBS else "labkit --help"
        complaint = " ".join(word().split()).rstrip(".")
        return _say(f"{complaint}. See {more}." if complaint else f"See {more}.", BAD_USAGE, debug=debug)
    sentence = f"labkit itself failed ({type(error).__name__}: {error}); run again with --debug to see where."
    return _say(sentence, OWN_FAULT, debug=debug)


def _outside(error: OSError, *, debug: bool) -> int:
    """Report a failed system call. Return 64 if the user can remove the cause, such as a full disk, otherwise 70."""
    if error.errno not in _DISK:
        return _unforeseen(error, debug=debug)
    place = error.filename or "the output folder"
    return _say(f"{place}: {error.strerror}; make room or name another folder with --out.", BAD_USAGE, debug=debug)


def _stop(number: int, _frame: FrameType | None) -> None:
    raise Stopped(number)
