"""The shared vocabulary: records, failpoints, verdicts, errors, and the judge, which finds lost and duplicate records.

The core uses the standard library only; it reads no clock or file, starts no process, and draws no random number.
"""
