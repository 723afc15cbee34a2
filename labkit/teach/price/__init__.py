"""Measure on this machine, while a learner waits, the cost of a guarantee: seconds, transactions, syncs and bytes.

Times differ from machine to machine and from run to run, so only rankings, slopes and counts support a conclusion.
"""
