"""Fill in what both wheels must agree on: the version, and the labkit that this grader belongs to."""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Metadata(MetadataHookInterface):
    """Version and dependencies of labkit-grading."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both in the metadata of the wheel that is being built."""
        here = Path(self.root)
        source = (here.parents[1] / "labkit" / "__init__.py").read_text(encoding="utf-8")
        match = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
        assert match is not None, "labkit/__init__.py says the version"
        own = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["labkit"]["dependencies"]
        # The grader calls functions of the lab that are no public interface, so it fits no other version.
        metadata["version"] = match[1]
        metadata["dependencies"] = [f"labkit[lab]=={match[1]}", *own]
