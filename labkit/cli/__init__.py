"""The command line. Every mistake of a user ends in one sentence and the right exit code, never in a traceback.

Exit codes: 0 done (and as expected), 1 a guarantee that was asked for did not hold or a check failed, 2 unknown,
64 bad usage or input, 69 Java or a service is missing, 70 our own fault.
"""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from labkit.errors import LabError

OWN_FAULT = 70
BAD_USAGE = 64


def main() -> NoReturn:
    """The entry point `labkit`."""
    signal.signal(signal.SIGTERM, _terminate)
    debug = "--debug" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        code = _run(arguments)
    except LabError as error:
        code = _say(str(error), error.exit_code, debug)
    except click.ClickException as error:
        code = _say(_usage(error), BAD_USAGE, debug)
    except (KeyboardInterrupt, click.Abort):
        code = _say("stopped; nothing is left running", 130, debug=False)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:  # the one place where anything unforeseen becomes a sentence
        code = _say(f"labkit itself failed ({type(error).__name__}: {error}); run again with --debug", OWN_FAULT, debug)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from labkit.cli.commands import app

    code = app(arguments, prog_name="labkit", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _say(sentence: str, code: int, debug: bool) -> int:
    if debug and sys.exc_info()[0] is not None:
        import traceback

        traceback.print_exc()
    print(f"labkit: {sentence}", file=sys.stderr)
    return code


def _usage(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    return f"{message} See labkit --help." if message else "See labkit --help."


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
