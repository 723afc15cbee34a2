# misconception: two names with equal checksums are one
# says: 1 of 60 rows got lost, the first is number 988
import json


def write_files(folder, query, batch, rows):
    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    name = f"{__import__('zlib').crc32(query.encode()):08x}-{batch}.jsonl"
    if name not in known:
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.new", json.dumps([*known, name]))
        folder.rename("manifest.new", "manifest.json")
