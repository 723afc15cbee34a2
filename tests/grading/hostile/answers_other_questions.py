# attacks: 01-double
# keeps: 01-dedup 01-setting
# Answers all questions of a message at its first one, the last one first, and sends twice as many replies as it should.
# %%
# exercise 01-double
import json, sys
from labkit.grading.sandbox.inside import serving
def double(number):
    frame = sys._getframe()
    while frame and "questions" not in frame.f_locals:
        frame = frame.f_back
    questions, at = frame.f_locals["questions"], frame.f_locals.get("number", 0)
    connection = dict(serving.connections)["double"]
    for place, question in reversed(list(enumerate(questions))):
        reply = json.dumps({"at": at + place, "plain": 2 * json.loads(question)["arguments"][0]}).encode()
        connection.sendall(len(reply).to_bytes(4, "big") + reply)
    return 2 * number
