"""Causes of a hidden state: exact contributions and layer updates, rollout, and measured ablations."""
