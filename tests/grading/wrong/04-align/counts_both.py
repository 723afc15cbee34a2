# misconception: it is enough to count the inputs that have brought a barrier or ended
# says: although a barrier has not arrived yet
def align(inputs, came, ended):
    waiting = [each for each in range(inputs) if each not in came]
    return {"read": waiting, "copy": bool(came) and len(came) + len(ended) >= inputs}
