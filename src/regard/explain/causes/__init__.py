"""Explain a hidden state by exact contributions, layer updates, rollout, and measured ablations."""
