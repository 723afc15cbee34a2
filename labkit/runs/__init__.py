"""A run of the word count: what is asked for, who starts and kills it, what was recorded, and its pages."""
