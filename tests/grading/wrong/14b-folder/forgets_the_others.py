# misconception: the manifest names the newest batch
# says: Without a crash: at-most-once
import json


def write_files(folder, query, batch, rows):
    name = f"{query.encode().hex()}-{batch}.jsonl"
    folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
    folder.write("manifest.new", json.dumps([name]))
    folder.rename("manifest.new", "manifest.json")
