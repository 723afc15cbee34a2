"""Asks pip for the versions of a package, and the package index for the days of publication and withdrawn versions.

pip knows the user's index, proxies and certificates, and prints the addresses that it reads. If the index offers the
simple API as JSON (PEP 691), labkit also learns upload times (PEP 700) and withdrawn, *yanked* files (PEP 592).
"""

import json
import re
import ssl
import subprocess
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.host.environments import pip_command

_AVAILABLE = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_PAGE = re.compile(r"^\s*\* (https?://\S+)$", re.MULTILINE)
_JSON = "application/vnd.pypi.simple.v1+json"
_SECONDS = 30.0
_TROUBLE = ("Could not fetch URL", "Retrying (")


class Releases(NamedTuple):
    """The versions of a package that pip can install here, with their dates, and which of the versions are yanked."""

    versions: tuple[str, ...]
    """The version numbers, in the order in which pip lists them."""
    days: Mapping[str, str]
    """The day on which the first file of a version was published, as `2025-06-24`; a version may be missing."""
    yanked: frozenset[str]
    knows_yanked: bool
    """Whether the index states which versions are yanked."""


def releases(package: str) -> Releases:
    """Return the versions of a package that pip can install here.

    Raises `InvalidInput` if there are none, and `ServiceUnavailable` if pip cannot reach its index.
    """
    command = [*pip_command(), "index", "versions", package, "--pre", "-vv", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    listed = _AVAILABLE.search(done.stdout)
    if listed is None:
        if any(each in done.stdout + done.stderr for each in _TROUBLE):
            raise ServiceUnavailable(
                f"pip cannot reach its package index, so the versions of {package} are unknown; check the network, and "
                "run `pip config list` to see which index is set."
            )
        raise InvalidInput(
            f"--package {package}: pip finds no version for this Python; correct the name, or configure pip's index."
        )
    versions = tuple(each.strip() for each in listed.group(1).split(","))
    pages = [_page(address) for address in _PAGE.findall(done.stdout)]
    days, yanked = published([each for page in pages if page for each in page.get("files", ())])
    return Releases(versions, days, yanked, bool(pages) and None not in pages)


def published(files: list[dict[str, Any]]) -> tuple[dict[str, str], frozenset[str]]:
    """Return a dict from version to date, such as `2025-06-24`, and the set of yanked versions of a package.

    `files` is the list of the package's files from the index (PEP 691); a version is yanked if all its files are.
    """
    of: dict[Version, list[dict[str, Any]]] = {}
    for file in files:
        if (version := _version(str(file.get("filename", "")))) is not None:
            of.setdefault(version, []).append(file)
    days = {}
    for version, those in of.items():
        if times := [str(each["upload-time"]) for each in those if each.get("upload-time")]:
            days[str(version)] = min(times)[:10]
    yanked = frozenset(str(version) for version, those in of.items() if all(each.get("yanked") for each in those))
    return days, yanked


def _version(filename: str) -> Version | None:
    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[1]
        return parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


def _page(address: str) -> dict[str, Any] | None:
    request = urllib.request.Request(address, headers={"Accept": _JSON})  # noqa: S310 - http(s), as the pattern says
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS, context=ssl.create_default_context()) as answer:  # noqa: S310
            page = json.load(answer)
    except (OSError, ValueError):  # there is no such page, or the index offers only HTML
        return None
    return page if isinstance(page, dict) else None
