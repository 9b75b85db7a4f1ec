"""What made an outcome: a next token's logit, or how near two words are."""
