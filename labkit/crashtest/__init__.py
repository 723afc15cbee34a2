"""Crash-tests a user's own Spark sink or pipeline: finds its durable effects, kills a real job at each, and judges.

`labkit.host.syscalls` watches and kills the job, `labkit.crashtest.blackbox` proves each kill, and `labkit.core.judge`
judges the rows that are left. The user's file with the sink is tested as it is, without any code for the test.
"""
