"""What learners touch: the notebook's functions, the crash panel, exercises, JupyterLab's settings, servers by hand.

It must not know who grades, and must not hold a rule of any protocol.
"""
