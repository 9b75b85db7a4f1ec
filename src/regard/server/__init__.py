"""Serve the page from this machine: texts typed in a browser are traced here, numbers travel as they are requested."""
