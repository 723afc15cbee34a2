"""Bytewax copies orders from a file to a FileSink, three to a batch, with a snapshot for recovery after each batch.

With the argument `setup` it only makes what Bytewax wants before the first start: the recovery partition.
"""

import sys
from datetime import timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.files import FileSink, FileSource
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

flow = Dataflow("orders")
lines = op.input("read", flow, FileSource(Path(__file__).parent / "expected.jsonl", batch_size=3))
op.output("write", op.key_on("key", lines, lambda _line: "all"), FileSink(Path("output/orders.jsonl")))
if sys.argv[1:] == ["setup"]:
    for folder in ("output", "checkpoint"):
        Path(folder).mkdir()
    init_db_dir(Path("checkpoint"), 1)
else:
    cli_main(flow, epoch_interval=timedelta(0), recovery_config=RecoveryConfig("checkpoint"))
