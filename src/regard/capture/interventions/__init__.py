"""Interventions in a forward pass and how they are applied: ablations, patches and steering."""
