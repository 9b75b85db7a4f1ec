"""Serve the interactive page on this machine. Texts typed in a browser are traced, and numbers sent on request."""
