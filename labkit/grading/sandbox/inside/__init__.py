"""Programs that run beside a learner's code while it is graded: they execute cells and answer questions.

A learner's code can read, patch or kill all of them. So this package must not hold a solution, a judge or a hidden
variant, and none of its messages is more than an answer to be judged.
"""
