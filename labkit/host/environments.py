"""Creates virtual environments in the user's cache: with uv if it is installed, otherwise with venv and pip.

An environment is complete once it has its seal, a file that is written last. So a killed installation is repeated. uv
does not read pip's configuration, so labkit passes pip's package index to uv in environment variables.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from labkit.core.errors import LabError, ServiceUnavailable
from labkit.core.words import telling_line
from labkit.host import durable
from labkit.host.addresses import required_cache_folder
from labkit.host.processes.own_python import own_python

SEAL = "installed"
"""The name of the file that marks a virtual environment as complete."""

_FOR_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
}
"""Settings of pip, each with the environment variable of uv that means the same."""
_BECAUSE = re.compile(r"\bBecause (.*?)(?:,\s+we\s+can\s+conclude|$)", re.DOTALL)
_SECTIONS = ("global", "install", ":env:")
"""The sections of pip's configuration that an installation reads; a later one overrules an earlier one."""


class NotInstalled(LabError):
    """Raised when uv or pip fails to install packages. The message is the line of their output that explains why."""

    exit_code = 69


def run_steps(steps: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run the commands in `steps`, which create `folder`, and return the output of the last command.

    If a command fails, delete `folder`, and raise `NotInstalled`.
    """
    output = ""
    for command in steps:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise NotInstalled(_reason(done.stderr or done.stdout))
        output = done.stdout
    return output


def environment_with(requirements: Sequence[str], name: str) -> tuple[Path, list[str]]:
    """Return the path of Python in a virtual environment with these requirements, and the packages in the environment.

    Each package is a text `name==version`. The environment is kept in labkit's cache, under `name` and a digest of the
    requirements and of the Python that runs labkit. Raises `NotInstalled` if the environment cannot be created, and
    `ServiceUnavailable` if the user has no cache folder.
    """
    cache = required_cache_folder("Virtual environments")
    content = "\n".join([*requirements, sys.version, sys.executable])
    folder = cache / "bisect" / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    durable.make_folder(folder.parent)
    with durable.locked(folder.parent):
        if not (folder / SEAL).exists():
            shutil.rmtree(folder, ignore_errors=True)
            durable.replace(folder / SEAL, _install(requirements, folder))
    return folder / "bin" / "python", (folder / SEAL).read_text(encoding="utf-8").split()


def _install(requirements: Sequence[str], folder: Path) -> str:
    """Create a virtual environment in `folder` with the requirements, and return the output of `pip freeze`."""
    python = str(folder / "bin" / "python")
    if (uv := find_uv()) is None:
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        making = own_python("-m", "venv", str(folder))
        return run_steps([making, [*pip, "install", "--quiet", *requirements], [*pip, "freeze"]], folder)
    quiet = [*uv, "--quiet"]
    # Byte code is compiled now, because a pipeline that writes it at a start would change files in the crash test.
    install = [*quiet, "pip", "install", "--compile-bytecode", "--python", python, *requirements]
    making = [*quiet, "venv", "--python", sys.executable, str(folder)]
    listed = subprocess.run([*pip_command(), "config", "list"], capture_output=True, text=True, check=False).stdout
    environment = {**uv_variables(listed), **os.environ}
    return run_steps([making, install, [*uv, "pip", "freeze", "--python", python]], folder, environment)


def find_uv() -> list[str] | None:
    """Return the command that starts uv, as a list of words; None if uv is not installed."""
    if importlib.util.find_spec("uv") is not None:
        return own_python("-m", "uv")
    return [found] if (found := shutil.which("uv")) else None


def pip_command() -> list[str]:
    """Return the command that runs pip for this Python; if pip is not installed, uv runs a pip of its own.

    Raises `ServiceUnavailable` if neither pip nor uv is installed.
    """
    if importlib.util.find_spec("pip") is not None:
        return own_python("-m", "pip")
    if (uv := find_uv()) is None:
        raise ServiceUnavailable(
            f"{sys.executable} has no pip, which labkit needs to list the versions of a package: install pip or uv."
        )
    return [*uv, "tool", "run", "--python", sys.executable, "pip"]


def uv_variables(listed: str) -> dict[str, str]:
    """Return pip's settings as environment variables for uv; `listed` is the output of `pip config list`."""
    settings = {}
    pairs = [line.partition("=") for line in listed.splitlines()]
    for section in _SECTIONS:
        for key, _, value in pairs:
            name = key.removeprefix(f"{section}.")
            if name != key and name in _FOR_UV:
                settings[_FOR_UV[name]] = value.strip("'\"").replace("\\n", " ").strip()
    return settings


def _reason(output: str) -> str:
    """Return the reason why an installation failed, as one line; `output` is what uv or pip printed."""
    because = _BECAUSE.search(output)
    if because is not None:
        return re.sub(r"[\s×╰─▶│├]+", " ", because.group(1)).strip()
    errors = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    return (errors[-1] if errors else telling_line(output)) or "the installer printed no reason"
