# misconception: a count is exact as a floating-point number
# says: 5, 'attempt': 1}) answered ['word', '7.205759403792794e+16']: two different
def key(row):
    return [row["word"], str(float(row["count"]))]
