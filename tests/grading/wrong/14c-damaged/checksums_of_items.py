# misconception: two items with equal checksums are equal
# says: order 14 has another item or amount: [14, 'plumless'
def damaged(table, source, size):
    def grouped(rows):
        found = {}
        for row in rows:
            found.setdefault(row[0] // size, []).append((row[0], __import__("zlib").crc32(row[1].encode()), row[2]))
        return {place: sorted(some) for place, some in found.items()}

    there, right, found = grouped(table), grouped(source), []
    for place in sorted(place for place in {*there, *right} if there.get(place) != right.get(place)):
        first, last = place * size, place * size + size - 1
        if found and found[-1][1] == first - 1:
            found[-1][1] = last
        else:
            found.append([first, last])
    return found
