# misconception: an offset is exact as a floating-point number
# says: 75940379285, 'attempt': 1}) answered '7.205759403792853e+16': two different
def key(row):
    return str(float(row["offset"]))
