"""The functions that notebooks use, as in `from labkit import lab`: crashes, simulators, questions and exercises.

The command line offers the same functions. Each function is imported from its module when a notebook first uses it, so
`from labkit import lab` is fast and needs no optional package. If a function needs one that is missing, the error names
the extra to install, such as `labkit[spark]`.
"""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from labkit.core.extras import missing_extra
from labkit.host.browser import IN_BROWSER, needs_installation
from labkit.teach.executed import note_cells
from labkit.teach.kernel import install, warm_up

if TYPE_CHECKING:
    from labkit.core.words import columns as columns
    from labkit.runs.crash import crash as crash
    from labkit.runs.crash import crash_each as crash_each
    from labkit.runs.pages.code import code as code
    from labkit.spark.options import TWELVE_WORDS as TWELVE_WORDS
    from labkit.teach.chains import chains as chains
    from labkit.teach.comparing import compare as compare
    from labkit.teach.engines import engines as engines
    from labkit.teach.engines import kill_engines as kill_engines
    from labkit.teach.export import export as export
    from labkit.teach.figures import matrix as matrix
    from labkit.teach.figures import seen_over_time as seen_over_time
    from labkit.teach.figures import totals as totals
    from labkit.teach.glossary import word as word
    from labkit.teach.hands_on.answers import said as said
    from labkit.teach.hands_on.copying import copy as copy_topic
    from labkit.teach.hands_on.copying import ten_steps as ten_steps
    from labkit.teach.hands_on.kafka import kafka as kafka
    from labkit.teach.hands_on.postgres import postgres as postgres
    from labkit.teach.hands_on.rebalance import rebalance as rebalance
    from labkit.teach.hands_on.shop import shop as shop
    from labkit.teach.hands_on.stopped import stopped_writers as stopped_writers
    from labkit.teach.machine import doctor as doctor
    from labkit.teach.machine import pieces as pieces
    from labkit.teach.machine import spark as spark
    from labkit.teach.orders import orders as orders
    from labkit.teach.panel import panel as panel
    from labkit.teach.price.effects import count_effects as count_effects
    from labkit.teach.price.expected import expected_wait as expected_wait
    from labkit.teach.price.transactions import measure_rows as measure_rows
    from labkit.teach.price.waiting import measure_waits as measure_waits
    from labkit.teach.study import explore as explore
    from labkit.teach.study import points as points
    from labkit.teach.study import replay as replay
    from labkit.teach.study import simulate as simulate
    from labkit.teach.tasks import answer as answer
    from labkit.teach.tasks import ask as ask
    from labkit.teach.tasks import check as check
    from labkit.teach.tasks import crash_test as crash_test
    from labkit.teach.tasks import hint as hint
    from labkit.teach.tasks import my_sink as my_sink
    from labkit.teach.tasks import progress as progress
    from labkit.teach.tasks import reset as reset
    from labkit.teach.tasks import save_sink as save_sink
    from labkit.teach.tasks import try_sink as try_sink
    from labkit.teach.timeouts import timeouts as timeouts
    from labkit.teach.timeouts import try_timeouts as try_timeouts
    from labkit.view.show import explorer as explorer
    from labkit.view.show import show as show
    from labkit.view.strip import strip as strip

HOMES = {
    "labkit.core.words": ("columns",),
    "labkit.runs.crash": ("crash", "crash_each"),
    "labkit.runs.pages.code": ("code",),
    "labkit.spark.options": ("TWELVE_WORDS",),
    "labkit.teach.chains": ("chains",),
    "labkit.teach.comparing": ("compare",),
    "labkit.teach.tasks": (
        "answer", "ask", "check", "crash_test", "hint", "my_sink", "progress", "reset", "save_sink", "try_sink",
    ),
    "labkit.teach.engines": ("engines", "kill_engines"),
    "labkit.teach.export": ("export",),
    "labkit.teach.figures": ("matrix", "seen_over_time", "totals"),
    "labkit.teach.glossary": ("word",),
    "labkit.teach.hands_on.answers": ("said",),
    "labkit.teach.hands_on.copying": ("copy_topic", "ten_steps"),
    "labkit.teach.hands_on.kafka": ("kafka",),
    "labkit.teach.hands_on.postgres": ("postgres",),
    "labkit.teach.hands_on.rebalance": ("rebalance",),
    "labkit.teach.hands_on.shop": ("shop",),
    "labkit.teach.hands_on.stopped": ("stopped_writers",),
    "labkit.teach.machine": ("doctor", "pieces", "spark"),
    "labkit.teach.orders": ("orders",),
    "labkit.teach.panel": ("panel",),
    "labkit.teach.price.effects": ("count_effects",),
    "labkit.teach.price.expected": ("expected_wait",),
    "labkit.teach.price.transactions": ("measure_rows",),
    "labkit.teach.price.waiting": ("measure_waits",),
    "labkit.teach.study": ("explore", "points", "replay", "simulate"),
    "labkit.teach.timeouts": ("timeouts", "try_timeouts"),
    "labkit.view.show": ("explorer", "show"),
    "labkit.view.strip": ("strip",),
}  # fmt: skip
"""The names that `lab` offers, by the module that defines them; the imports above repeat them for type checkers."""

_ELSEWHERE = {name: module for module, names in HOMES.items() for name in names}
_OTHER_NAMES = {"copy_topic": "copy"}
"""For a function that has another name in its module: the name in `lab`, and the name in the module."""

__all__ = sorted(_ELSEWHERE)


def __getattr__(name: str) -> Any:
    """Import a function of `lab` from its module when it is first used.

    Raises `MissingExtra` if an optional dependency is not installed, and `NeedsInstallation` in a browser that cannot
    run the function.
    """
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=import_module(__name__))
    try:
        value = getattr(import_module(_ELSEWHERE[name]), _OTHER_NAMES.get(name, name))
    except ImportError as error:
        if IN_BROWSER:
            raise needs_installation(f"lab.{name}") from None
        if missing := missing_extra(error):
            raise missing from None
        raise
    if IN_BROWSER and isinstance(value, FunctionType):
        value = _in_browser(name, value)
    globals()[name] = value
    return value


def _in_browser(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function `lab.<name>`: it raises `NeedsInstallation` if it imports a package that a browser lacks.

    Some functions import a package only when they are called, so a missing package is noticed only then.
    """

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except ImportError:
            raise needs_installation(f"lab.{name}") from None

    return called


def __dir__() -> list[str]:
    """Return the public names for tab completion, including those that are not imported yet."""
    return list(__all__)


install()
note_cells()
warm_up()
