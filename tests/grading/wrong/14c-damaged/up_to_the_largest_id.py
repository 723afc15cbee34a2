# misconception: a range ends where the ids end
# says: 2000000 to 2099999 is damaged
def damaged(table, source, size):
    def grouped(rows):
        found = {}
        for row in rows:
            found.setdefault(row[0] // size, []).append(row)
        return {place: sorted(some) for place, some in found.items()}

    there, right, found = grouped(table), grouped(source), []
    for place in sorted(place for place in {*there, *right} if there.get(place) != right.get(place)):
        first, last = place * size, min(place * size + size - 1, 2_000_000)
        if found and found[-1][1] == first - 1:
            found[-1][1] = last
        else:
            found.append([first, last])
    return found
