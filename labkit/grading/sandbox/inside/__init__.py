"""Programs that run in the same sandbox as a learner's code: they execute its cells and answer the grader's questions.

A learner's code can read, patch or kill all of them. So this package contains no solution, no judge and no
hidden variant, and the grader treats each of its messages as an answer to be judged.
"""
