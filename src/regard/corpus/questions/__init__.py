"""What a store can be asked: a word's occurrences, senses and change of meaning, and the nearest texts."""
