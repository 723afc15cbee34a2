"""Simulators of protocols, the search through all their schedules, and traces of single ones.

This package uses the standard library only. It reads no clock and no files, draws no unseeded random number, and does
not depend on hash order.
"""
