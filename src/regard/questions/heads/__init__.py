"""What every head's attention follows: in texts, in tests made for it, over a corpus."""
