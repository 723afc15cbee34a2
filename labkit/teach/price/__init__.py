"""Measure on this machine, while a learner waits, the cost of a guarantee: seconds, transactions, syncs and bytes.

Times differ from machine to machine and from run to run. So compare only which way is faster, slopes, and counts.
"""
