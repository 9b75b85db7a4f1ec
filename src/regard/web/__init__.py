"""The page: traces as data that a browser computes weights from, and one offline file that holds them."""
