# misconception: hexadecimal digits are no letters of a word
# says:  'count': 26, 'batch': 5, 'attempt': 1}) answered '1astream': two different
def key(row):
    return f"{row['count']:x}" + row["word"]
