"""Crash-tests a user's own Spark sink or pipeline: finds its durable effects, kills a real job at each, and judges.

The job, the kill and its proof are those of `labkit.spark`, and the judge is `labkit.core.judge`. A sink is the user's
unedited file: this package must not ask a sink to be written for it.
"""
