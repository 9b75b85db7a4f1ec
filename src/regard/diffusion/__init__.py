"""Pipelines of diffusers that paint a text: which part of the picture looks at which word, exactly."""
