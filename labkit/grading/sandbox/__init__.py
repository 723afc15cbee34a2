"""Sandboxes for submitted code, which limit its rights and which files and processes of the machine it can see.

Only the programs in `inside` run in the same sandbox as submitted code, and no module of this package judges answers.
"""
