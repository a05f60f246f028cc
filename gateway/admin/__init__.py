"""What operators do: the admin API."""
