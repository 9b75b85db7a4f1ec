"""Pictures as models read them: opened, cut into patches, and the way back from a token to its place."""
