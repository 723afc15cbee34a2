"""Grading: learners' notebooks run in isolated processes, and their answers are judged outside of those.

Nothing here is installed for learners. Only `labkit.grading.sandbox.inside` runs beside the code of a learner; no other
module of this package must.
"""
