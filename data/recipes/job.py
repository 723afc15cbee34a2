"""A small streaming job: `python job.py STORE` writes the batches of `input` to a store, in order, by to_STORE.py.

`python job.py STORE read` prints the rows that every reader of the store sees, and `reset` empties store and progress.
"""

import importlib
import json
import os
import shutil
import sys
from pathlib import Path

QUERY = "orders-1"
"""The name of this query. A query that begins at batch 0 again, with a new checkpoint, needs another name."""

PROGRESS = Path("checkpoint/progress")


def next_batch():
    return int(PROGRESS.read_text()) if PROGRESS.exists() else 0


def save_progress(batch):
    """Notes the next batch, like the commit of a checkpoint: in one step, and only after the batch was written."""
    PROGRESS.parent.mkdir(exist_ok=True)
    draft = PROGRESS.with_suffix(".draft")
    with open(draft, "w") as file:
        file.write(str(batch))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(PROGRESS)


def run(store):
    batch = next_batch()
    while (path := Path(f"input/batch-{batch}.jsonl")).exists():
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        store.write_batch(rows, QUERY, batch)
        # A crash here repeats the batch at the next start. Therefore write_batch must recognise it.
        batch += 1
        save_progress(batch)


if __name__ == "__main__":
    store = importlib.import_module(f"to_{sys.argv[1]}")
    action = sys.argv[2] if len(sys.argv) > 2 else "run"
    if action == "read":
        for row in store.read():
            print(json.dumps(row))
    elif action == "reset":
        shutil.rmtree("checkpoint", ignore_errors=True)
        store.reset()
    else:
        run(store)
