"""What a text is made of: tokens, words, tokenizers, word vectors."""
