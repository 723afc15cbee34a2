# misconception: only the rows that differ are repaired, not the whole range
# says: 4 to 7 is damaged: order 5 is missing
def damaged(table, source, size):
    wrong = {row[0] for row in table + source if table.count(row) != source.count(row)}
    return [[number, number] for number in sorted(wrong)]
