"""Answer questions about texts. Each question has a module or folder with its query, answer, sentences and panels."""
