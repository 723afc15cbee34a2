"""The pages, cards and diagrams that show a finished run to people, made from the run's record alone."""
