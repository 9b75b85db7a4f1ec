"""Which tokens and heads moved a word, each measured by taking it away."""
