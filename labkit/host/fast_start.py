"""Read LABKIT_FAST, the environment variable that switches off everything that only makes starts faster.

Switching something off costs seconds and changes no verdict. `labkit.spark.fast` implements the faster starts.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest

VARIABLE = "LABKIT_FAST"

NONE = "none"
"""The value that switches everything off."""


@dataclass(frozen=True, slots=True)
class FastStart:
    """The faster starts that are allowed. A warm standby is chosen per run instead (`labkit run --standby`)."""

    zygote: bool = True
    """Fork Spark's Python processes from one that has imported what they need (`labkit.spark.fast.zygote`)."""
    archive: bool = True
    """Start JVMs with a class-data archive if there is one (`labkit.spark.fast.archive`)."""

    def __str__(self) -> str:
        allowed = {"zygote": self.zygote, "archive": self.archive}
        return ",".join(name for name, on in allowed.items() if on) or NONE


NAMES = [field.name for field in fields(FastStart)]
OFF = FastStart(zygote=False, archive=False)


def fast_start(environment: Mapping[str, str] | None = None) -> FastStart:
    """Parse LABKIT_FAST: `none`, or names separated by commas. If it is not set, everything is allowed.

    Raises `InvalidInput` for an unknown name.
    """
    text = (os.environ if environment is None else environment).get(VARIABLE, "")
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return FastStart()
    if names == [NONE]:
        return OFF
    for name in names:
        if name not in NAMES:
            raise InvalidInput(f"{VARIABLE}={text}: {name!r} is unknown; {nearest(name, [*NAMES, NONE])}")
    return FastStart(zygote="zygote" in names, archive="archive" in names)
