"""What learners touch: the notebook's functions, the crash panel, exercises, JupyterLab's settings, servers by hand."""
