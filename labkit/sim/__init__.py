"""Simulators of protocols, a search through all schedules of a simulator, and traces that replay single schedules.

The package needs the standard library only. It reads no clock, draws no unseeded random number, and does not depend on
hash order.
"""
