"""A run of the word count: its scenario, its drivers and crashes, its record, and its pages."""
