"""Define answers and their panels, and draw panels in terminals and matplotlib figures."""
