"""What gateways and workers say to each other: the leaf that both import, and that imports neither."""
