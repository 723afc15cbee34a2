"""The command line as a user meets it: exit code, standard output, standard error."""

import io
import os
import subprocess
import sys
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path

from labkit import cli


def labkit(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> tuple[int, str, str]:
    """In this process, which saves a second; in one of its own where it needs another environment."""
    words = [str(each) for each in arguments]
    if environment:
        return apart(*words, cwd=cwd, **environment)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), chdir(cwd) if cwd else nullcontext():
        code = cli.execute(words)
    return code, out.getvalue(), err.getvalue()


def apart(*words: str, cwd: Path | None = None, **environment: str) -> tuple[int, str, str]:
    """In a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "labkit", *words],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env=dict(os.environ, **environment),
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def refusal(*arguments: str | Path, cwd: Path | None = None, code: int = 64, **environment: str) -> str:
    """The one sentence on standard error."""
    found, out, words = labkit(*arguments, cwd=cwd, **environment)
    assert (found, out) == (code, ""), words
    lines = words.strip().splitlines()
    assert len(lines) == 1, words
    assert lines[0].startswith("labkit: ")
    return lines[0].removeprefix("labkit: ")
