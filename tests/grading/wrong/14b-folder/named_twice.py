# misconception: the rename makes it exactly-once
# says: Killed in batch 0, when the sink had returned: at-least-once
import json


def write_files(folder, query, batch, rows):
    name = f"{query.encode().hex()}-{batch}.jsonl"
    names = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
    folder.write("manifest.new", json.dumps([*names, name]))
    folder.rename("manifest.new", "manifest.json")
