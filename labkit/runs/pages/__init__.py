"""Pages that show a recorded run to people, made from the run's record alone."""
