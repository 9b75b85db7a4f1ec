"""Show traces and attention: `regard.plot`, `regard.show`, `regard.save_page`, and notebook displays."""
