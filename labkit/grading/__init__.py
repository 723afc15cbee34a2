"""Grading: learners' notebooks run in isolated processes, and trusted code in other processes judges the answers.

The copy of the lab for learners does not contain this package. Of its modules, only those in
`labkit.grading.sandbox.inside` run in the same sandbox as a learner's code.
"""
