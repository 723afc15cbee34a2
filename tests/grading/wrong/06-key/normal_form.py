# misconception: words that look the same are the same
# says: 'word': 'cafe\u0301'
import unicodedata


def key(row):
    return [unicodedata.normalize("NFKC", row["word"]), row["count"]]
