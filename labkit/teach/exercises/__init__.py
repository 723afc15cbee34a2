"""The exercises of the notebooks, without any solution or hidden variant: tasks, hints, and the judges of answers.

This package is shipped to the learners.
"""
