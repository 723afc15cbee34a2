"""The harness runs a job under test: its driver, the reader outside, and what the job leaves behind.

This package must not judge what was seen.
"""
