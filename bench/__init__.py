"""Measurements of the lab on this machine, for a checkout: `make bench`, or `python -m bench --help`.

A measurement is one module with a function `measure`, and one line in `bench.registry.MEASUREMENTS`. The modules with
`jupyter` in their names also serve the tests. Nothing in the package `labkit` may import this folder.
"""
