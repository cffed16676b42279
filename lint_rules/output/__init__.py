"""How findings are written, one format a file."""
