# misconception: a set in the program does as well as the table
# says: receive(0, [], []) answered ['output and note', 'acknowledge'] first and ['acknowledge'] when asked again:
seen = set()


def receive(id, table, memory):
    if id in seen:
        return ["acknowledge"]
    seen.add(id)
    return ["output and note", "acknowledge"]
