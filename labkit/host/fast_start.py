"""Read LABKIT_FAST, the environment variable that names the ways in which labkit may start processes faster.

Without them a start takes some seconds longer, but no verdict changes. `labkit.spark.fast` implements them.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest

VARIABLE = "LABKIT_FAST"

NONE = "none"
"""The value of LABKIT_FAST that forbids every way of starting faster."""


@dataclass(frozen=True, slots=True)
class FastStart:
    """The ways of starting Spark faster that the environment variable LABKIT_FAST allows, each as true or false."""

    zygote: bool = True
    """Whether Spark's Python processes may be forks of one that has done its imports (`labkit.spark.fast.zygote`)."""
    archive: bool = True
    """Whether JVMs may start with a class-data archive, if there is one (`labkit.spark.fast.archive`)."""
    warm: bool = True
    """Whether a notebook keeps started Spark drivers waiting for its next crash (`labkit.runs.warm_drivers`)."""

    def __str__(self) -> str:
        return ",".join(name for name, on in asdict(self).items() if on) or NONE


NAMES = [field.name for field in fields(FastStart)]
OFF = FastStart(zygote=False, archive=False, warm=False)
"""The settings without any way of starting faster."""


def fast_start(environment: Mapping[str, str] | None = None) -> FastStart:
    """Return which ways of starting Spark faster the variable LABKIT_FAST allows; all of them if it is not set.

    `environment` replaces the environment variables of this process. Raises `InvalidInput` for an unknown way.
    """
    text = (os.environ if environment is None else environment).get(VARIABLE, "")
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return FastStart()
    if names == [NONE]:
        return OFF
    for name in names:
        if name not in NAMES:
            raise InvalidInput(
                f"LABKIT_FAST={text}: {name!r} is not one of the ways to start Spark faster; "
                f"{nearest(name, [*NAMES, NONE])}"
            )
    return FastStart(**{name: name in names for name in NAMES})
