"""Papermill as it comes, with a kernel of its own and no isolation: what the speed of the grader is measured
against. It must not be used to grade.
"""

import json
import time

import nbformat
from papermill import execute_notebook


def execute(notebook: str) -> float:
    """Executes a notebook, which is trusted; the seconds that it took."""
    begun = time.perf_counter()
    execute_notebook(nbformat.from_dict(json.loads(notebook)), None, kernel_name="python3", progress_bar=False)
    return time.perf_counter() - begun
