"""Exercises: what is asked in the notebooks, how an answer is judged, hints; without any solution or hidden variant.

What lies here goes to the learners.
"""
