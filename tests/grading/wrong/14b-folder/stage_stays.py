# misconception: nobody minds a file that nobody reads
# says: Without a crash: files left over at the end
import json


def write_files(folder, query, batch, rows):
    name = f"{query.encode().hex()}-{batch}.jsonl"
    names = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if name not in names:
        folder.write(name + ".stage", "".join(json.dumps(row) + "\n" for row in rows))
        folder.write(name, folder.read(name + ".stage"))
        folder.write("manifest.new", json.dumps([*names, name]))
        folder.rename("manifest.new", "manifest.json")
