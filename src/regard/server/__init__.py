"""Serve the interactive page on this machine: trace texts typed in a browser, and send numbers on request."""
