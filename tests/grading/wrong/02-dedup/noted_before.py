# misconception: the output and its id may be two writes, the id first
# says: receive(0, [], []) answered ['note', 'output', 'acknowledge']
def receive(id, table, memory):
    if id in table:
        return ["acknowledge"]
    return ["note", "output", "acknowledge"]
