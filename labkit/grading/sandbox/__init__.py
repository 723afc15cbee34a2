"""Where submitted code runs: what a sandbox may do, what it sees, and the programs that run inside of it.

It must not judge an answer, and nothing outside of `inside` runs beside submitted code.
"""
