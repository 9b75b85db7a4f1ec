"""Read documents from files, folders and streams, one after another, in any supported format."""
