"""Build the interactive page: a single offline HTML file with data from which the browser computes weights."""
