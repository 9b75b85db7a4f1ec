"""The texts of a store that are nearest to a text."""
