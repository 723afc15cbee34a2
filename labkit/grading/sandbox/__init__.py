"""Sandboxes for submitted code: they limit its rights and what it sees of the machine.

Only the programs in `inside` run in the same sandbox as submitted code, and no module of this package judges
answers.
"""
