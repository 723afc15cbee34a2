"""The one switch of what only makes starts faster: the environment variable LABKIT_FAST, read here and nowhere else.

Whatever is switched off costs seconds and changes no verdict. The programs behind the switch are in
`labkit.spark.fast`. This module must not know how a start is made faster.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest

VARIABLE = "LABKIT_FAST"

NONE = "none"
"""The value of the variable that switches everything off."""


@dataclass(frozen=True, slots=True)
class FastStart:
    """What may make a start faster. The warm standby is a choice of its own for each run (`labkit run --standby`)."""

    zygote: bool = True
    """Spark's Python processes are forked from one that has imported what they need (`labkit.spark.fast.zygote`)."""
    archive: bool = True
    """JVMs start by a class-data archive, where there is one (`labkit.spark.fast.archive`)."""

    def __str__(self) -> str:
        allowed = {"zygote": self.zygote, "archive": self.archive}
        return ",".join(name for name, on in allowed.items() if on) or NONE


NAMES = [field.name for field in fields(FastStart)]
OFF = FastStart(zygote=False, archive=False)


def fast_start(environment: Mapping[str, str] | None = None) -> FastStart:
    """What LABKIT_FAST allows: `none`, or names with commas between them; everything where it is not set.

    Raises `InvalidInput` for a name that nobody knows.
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
