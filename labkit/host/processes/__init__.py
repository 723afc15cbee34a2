"""Starts child processes, exchanges events with them, proves that they are dead, and ends them when their parent ends.

The package does not know what the processes run.
"""

ENDS_WITH_PARENT = "LABKIT_ENDS_WITH_PARENT"
"""The environment variable that makes `labkit` end together with the program that started it."""
