"""Simulators of protocols, the search through all their schedules, and traces of single ones.

From here down the core is pure: standard library, no clock, no unseeded chance, no files, no dependence on hash order.
"""
