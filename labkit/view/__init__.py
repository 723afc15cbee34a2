"""Seeing: text, pages and pictures of what a run or a model did. It draws what others found out and decides nothing."""
