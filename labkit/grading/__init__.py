"""Grading: learners' notebooks run in isolated processes, and their answers are judged outside of those.

Nothing here is installed for learners. Of this package only `inside` goes along with the code of a learner.
"""
