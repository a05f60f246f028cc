"""Which route a request takes, and how full it is there."""
