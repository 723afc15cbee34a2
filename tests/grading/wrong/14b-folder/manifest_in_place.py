# misconception: a small file is written at once
# says: a reader could not read: JSONDecodeError: Unterminated string
import json


def write_files(folder, query, batch, rows):
    name = f"{query.encode().hex()}-{batch}.jsonl"
    names = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if name not in names:
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.json", json.dumps([*names, name]))
