# misconception: one file for all rows may be written anew
# says: a reader could not read: JSONDecodeError: Expecting
import json


def write_files(folder, query, batch, rows):
    old = folder.read("rows.jsonl") if "rows.jsonl" in folder.names() else ""
    lines = [json.dumps(row) + "\n" for row in rows]
    folder.write("rows.jsonl", old + "".join(line for line in lines if line not in old))
    folder.write("manifest.new", json.dumps(["rows.jsonl"]))
    folder.rename("manifest.new", "manifest.json")
