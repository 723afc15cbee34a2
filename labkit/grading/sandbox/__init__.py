"""Sandboxes for submitted code, which limit its rights, and the files and processes of the machine that it can see.

Only the programs in `inside` run in the same sandbox as submitted code, and no module of this package judges answers.
"""
