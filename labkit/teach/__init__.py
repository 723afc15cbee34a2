"""Everything that learners use: functions for notebooks, crash panel, exercises, questions, JupyterLab's settings."""
