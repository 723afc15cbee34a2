"""Measure on this machine, while a learner waits, the cost of a guarantee: seconds, transactions, syncs and bytes.

Times differ from machine to machine and from run to run, so only orders, slopes and counts support a conclusion.
"""

from labkit.teach.price.effects import Effects, count_effects
from labkit.teach.price.expected import Expected, expected_wait
from labkit.teach.price.transactions import Rates, measure_rows
from labkit.teach.price.waiting import Waits, measure_waits

__all__ = ["Effects", "Expected", "Rates", "Waits", "count_effects", "expected_wait", "measure_rows", "measure_waits"]
