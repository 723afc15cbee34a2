"""What everything else speaks of: records, failpoints, verdicts, errors, and the one judge.

Standard library only: no clock, no chance, no files, no processes, no network.
"""
