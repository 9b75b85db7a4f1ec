"""How regard compares with other tools that show attention weights: the same model, the same tokens, measured."""
