# misconception: a message that is known was acknowledged already
# says: After 4 steps, whatever happens, the run never ends
def receive(id, table, memory):
    return [] if id in table else ["output and note", "acknowledge"]
