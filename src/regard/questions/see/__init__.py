"""What attention does to a word, or to every token of some texts."""
