"""Media of callers: taken in under limits, looked at apart, kept as long as their account says, shown by address."""
