"""What was found, in a few sentences: one module a question, each a pure function of what explain/ found."""

from regard.explain.findings.looks import layer_looked_at
from regard.explain.findings.see import findings

__all__ = ["findings", "layer_looked_at"]
