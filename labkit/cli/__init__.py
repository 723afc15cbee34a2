"""The command line. Every mistake of a user ends in one sentence and the right exit code, never in a traceback.

Exit codes: 0 done (and as expected), 1 a guarantee that was asked for did not hold or a check failed, 2 unknown,
64 bad usage or input, 69 Java or a service is missing, 70 our own fault.
"""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import typer

from labkit.errors import LabError

OWN_FAULT = 70
BAD_USAGE = 64
STOPPED = "stopped; nothing is left running; a run goes on with labkit run --resume FOLDER."


class Terminated(BaseException):
    """SIGTERM, as an exception: what is open closes its drivers on the way out."""


def main() -> NoReturn:
    """The entry point `labkit`."""
    signal.signal(signal.SIGTERM, _terminate)
    debug = "--debug" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        code = _run(arguments)
    except LabError as error:
        code = _say(str(error), error.exit_code, debug=debug)
    except (KeyboardInterrupt, typer.Abort):
        code = _say(STOPPED, 128 + signal.SIGINT, debug=False)
    except Terminated:
        code = _say(STOPPED, 128 + signal.SIGTERM, debug=False)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:  # the one place where anything unforeseen becomes a sentence
        code = _unforeseen(error, debug=debug)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from labkit.cli.commands import app

    code = app(arguments, prog_name="labkit", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _say(sentence: str, code: int, *, debug: bool) -> int:
    if debug and sys.exc_info()[0] is not None:
        import traceback

        traceback.print_exc()
    print(f"labkit: {sentence}", file=sys.stderr)
    return code


def _unforeseen(error: Exception, *, debug: bool) -> int:
    """A complaint of the option parser (it words its errors in `format_message`), or a fault of the lab's own."""
    word = getattr(error, "format_message", None)
    if word is not None:
        return _say(f"{' '.join(word().split())} See labkit --help.".lstrip(), BAD_USAGE, debug=debug)
    sentence = f"labkit itself failed ({type(error).__name__}: {error}); run again with --debug to see where."
    return _say(sentence, OWN_FAULT, debug=debug)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
