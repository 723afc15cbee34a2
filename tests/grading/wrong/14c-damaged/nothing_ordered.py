# misconception: an order of nothing does not count
# says: 0 to 3 is damaged: order 2 is in the table and not in the source
def damaged(table, source, size):
    def grouped(rows):
        found = {}
        for row in filter(lambda row: row[2], rows):
            found.setdefault(row[0] // size, []).append(row)
        return {place: sorted(some) for place, some in found.items()}

    there, right, found = grouped(table), grouped(source), []
    for place in sorted(place for place in {*there, *right} if there.get(place) != right.get(place)):
        first, last = place * size, place * size + size - 1
        if found and found[-1][1] == first - 1:
            found[-1][1] = last
        else:
            found.append([first, last])
    return found
