# misconception: offset and length side by side name the row
# says: answered '111': two different records
def key(row):
    return f"{row['offset']}{len(row['word'])}"
