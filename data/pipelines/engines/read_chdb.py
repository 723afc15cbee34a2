"""Prints the rows of the table orders in a copy of chdb's folder, since its writer locks the folder."""

import shutil
import tempfile
from pathlib import Path

from chdb.session import Session

if Path("output/orders.chdb").exists():
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "orders.chdb")
        shutil.copytree("output/orders.chdb", copy, symlinks=True)
        db = Session(str(copy))
        if "orders" in str(db.query("SHOW TABLES")):
            print(db.query("SELECT id, key FROM orders", "JSONEachRow"), end="")
        db.close()
