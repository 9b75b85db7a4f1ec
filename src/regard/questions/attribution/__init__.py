"""Attribute an outcome, such as a next token's logit or two words' cosine, to components or tokens."""
