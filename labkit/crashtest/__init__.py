"""Crash-tests a user's own Spark sink: finds its durable effects, kills a real job at each, says what it guarantees.

The job, the kill and its proof are those of `labkit.spark`, and the judge is `labkit.core.judge`. Nothing here asks the
sink to be written for it: a sink is the user's unedited file.
"""
