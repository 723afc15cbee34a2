"""Sandboxes, in which submitted code runs: their rights, their view of the machine, and the programs inside of them.

This package must not judge an answer, and no program outside of `inside` must run beside submitted code.
"""
