# misconception: the first letters tell two items apart
# says: 132 to 134 is damaged: order 133
def damaged(table, source, size):
    def grouped(rows):
        found = {}
        for row in rows:
            found.setdefault(row[0] // size, []).append((row[0], row[1][:16], row[2]))
        return {place: sorted(some) for place, some in found.items()}

    there, right, found = grouped(table), grouped(source), []
    for place in sorted(place for place in {*there, *right} if there.get(place) != right.get(place)):
        first, last = place * size, place * size + size - 1
        if found and found[-1][1] == first - 1:
            found[-1][1] = last
        else:
            found.append([first, last])
    return found
