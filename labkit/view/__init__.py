"""Views: text, pages and pictures of runs and models. They draw results that other packages computed."""
