# misconception: an entry in the store counts only if the checkpoint's file is there
# says: 'ha/10', 'chk-11/state']) answered 1; flink
import re


def next_step(engine, left):
    def numbers(pattern):
        return {int(found[1]) for found in (re.fullmatch(pattern, name) for name in left) if found}

    if engine == "flink":
        return max(numbers(r"ha/(\d+)") & numbers(r"chk-(\d+)/_metadata"), default=0) + 1
    plan = max(numbers(r"offsets/(\d+)"), default=0)
    return plan + (max(numbers(r"commits/(\d+)"), default=-1) >= plan)
