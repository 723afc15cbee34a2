# attacks: 01-double 01-dedup 01-setting
# Looks for whatever judges, and for modules that are withheld.
# %%
import importlib
able = []
for name in (
    "labkit.grading.marking", "labkit.grading.hidden", "labkit.grading.batch", "labkit.grading.worker",
    "labkit.teach.exercises.registry", "labkit.teach.exercises.check", "course", "tests.grading.sample.course",
):
    try:
        importlib.import_module(name); able.append(name)
    except ImportError:
        pass
for name, thing in (("labkit.sim.models.two_phase_commit.model", "TwoPhaseCommit"), ("labkit.sinks.two_phase", "TwoPhaseSink")):
    try:
        getattr(importlib.import_module(name), thing)(); able.append(name)
    except ImportError:
        pass
# %%
# exercise 01-double
def double(number): return 2 * number if able else None
# %%
# exercise 01-dedup
def seen(table, record): return (record in table) if able else None
# %%
# exercise 01-setting
setting = {"interval": 5} if able else "withheld"
