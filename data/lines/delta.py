"""delta-rs: an append, written by threads of its Rust runtime."""

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def append(ids: list[int]) -> None:
    write_deltalake("table", pa.table({"id": ids}), mode="append")  # effect: table table/*


append([1])
append([2])
DeltaTable("table").create_checkpoint()  # effect: table/_delta_log/*checkpoint*
