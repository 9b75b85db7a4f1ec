"""Where the picture that a pipeline painted looks at each word of its text."""
