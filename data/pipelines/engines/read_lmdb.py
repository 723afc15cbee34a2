"""Prints the rows of the LMDB store, read without a lock."""

from pathlib import Path

import lmdb

if Path("output/orders.lmdb/data.mdb").exists():
    with lmdb.open("output/orders.lmdb", readonly=True, lock=False) as db, db.begin() as transaction:
        for key, value in transaction.cursor():
            if key.startswith(b"row "):
                print(value.decode())
