"""Run the course's lessons and the four articles in a terminal: `regard lesson`, `regard article`."""
