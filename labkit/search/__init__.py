"""Searches that outgrow one process: a simulator's states on several cores of this machine, or on Spark.

What a search finds does not depend on where it runs. Nothing here may know what a state means.
"""
