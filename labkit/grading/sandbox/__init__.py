"""Sandboxes, in which submitted code runs: their rights, their view of the machine, and the programs inside of them.

Only the programs in `inside` run in the same sandbox as submitted code, and no module of this package judges answers.
"""
