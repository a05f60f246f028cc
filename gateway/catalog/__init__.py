"""The catalog: what can be called by name, for how much, and where it runs."""
