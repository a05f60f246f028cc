"""Media by reference: one port, a local folder or an S3-compatible store behind it. Gateways and workers share it."""
