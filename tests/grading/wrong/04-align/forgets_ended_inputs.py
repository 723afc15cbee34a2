# misconception: every input brings a barrier, also one that has ended
# says: On the way align(2, [], [0]) answered {'read':
def align(inputs, came, ended):
    return {"read": [each for each in range(inputs) if each not in came], "copy": len(came) == inputs}
