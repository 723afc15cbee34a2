"""What runs beside a learner's code while it is graded: it executes cells and answers questions, and it knows nothing.

Everything here can be read, patched or killed by that code. So it must not hold a solution, a judge or a hidden
variant, and nothing that it says is more than an answer to be judged.
"""
