"""Build the interactive page: traces as data from which a browser computes weights, in one offline HTML file."""
