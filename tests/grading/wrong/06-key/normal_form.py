# misconception: words that look the same are the same
# says: 'word': 'café'
import unicodedata


def key(row):
    return [unicodedata.normalize("NFKC", row["word"]), row["count"]]
