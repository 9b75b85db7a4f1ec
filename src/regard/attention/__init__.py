"""Exact attention whose weights can be seen: `door.attend` is the way in, `reference` the definition."""
