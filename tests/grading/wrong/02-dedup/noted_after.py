# misconception: the output and its id may be two writes, output first
# says: On the way receive(0, [], []) answered ['output', 'note', 'acknowledge']
def receive(id, table, memory):
    if id in table:
        return ["acknowledge"]
    return ["output", "note", "acknowledge"]
