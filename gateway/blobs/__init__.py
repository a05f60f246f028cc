"""Media by reference."""
