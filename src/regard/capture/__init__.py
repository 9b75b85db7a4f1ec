"""Capture forward passes of models of any architecture and build traces. The entry point is `session`."""
