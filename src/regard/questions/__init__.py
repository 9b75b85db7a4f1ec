"""Ask: a room for each question, with its query, its answer, its sentences and its panels."""
