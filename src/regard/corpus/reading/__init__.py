"""Read documents from files, folders and streams, row by row, whatever they are packed in."""
