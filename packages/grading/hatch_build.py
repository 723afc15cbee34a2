"""Tells hatchling the version of labkit-grading, and that it needs labkit of the same version."""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Metadata(MetadataHookInterface):
    """Version and dependencies of labkit-grading."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set version and dependencies in the wheel's metadata; the version is that in `labkit/__init__.py`."""
        here = Path(self.root)
        source = (here.parents[1] / "labkit" / "__init__.py").read_text(encoding="utf-8")
        match = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
        assert match is not None, "labkit/__init__.py has no line with __version__"
        own = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["labkit"]["dependencies"]
        # The grader calls functions of labkit that are not public, so it fits no other version.
        metadata["version"] = match[1]
        metadata["dependencies"] = [f"labkit[lab]=={match[1]}", *own]
