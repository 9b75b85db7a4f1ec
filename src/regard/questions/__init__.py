"""Ask: a room for each question, with what may be asked, its answer, its sentences and its panels."""
