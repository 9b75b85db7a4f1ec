"""Displays of traces and attention: `regard.plot`, `regard.show`, `regard.save_page`, and notebooks."""
