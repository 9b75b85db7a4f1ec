"""The picture of what `see` found: of a word or of whole texts, of a text and its target."""
