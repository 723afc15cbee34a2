"""The shared vocabulary: records, failpoints, verdicts, errors, and the one judge.

The core uses the standard library only, and neither clock, randomness, files, processes nor network.
"""
