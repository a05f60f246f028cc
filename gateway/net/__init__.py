"""Going out to addresses that callers name: what may be reached, and a client that keeps to it."""
