"""Answer questions about texts: a module or folder per question has its query, answer, sentences and panels."""
