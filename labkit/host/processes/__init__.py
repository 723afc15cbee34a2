"""Child processes: how one is started, spoken to, waited for, proven dead, and ended with its parent. It must
not know what they run.
"""
