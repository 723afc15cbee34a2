"""One run of a job under test: its driver, the reader that looks from outside, what is left behind.

It must not judge what was seen.
"""
