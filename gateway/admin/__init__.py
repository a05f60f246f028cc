"""What operators do: the admin API and the dashboard."""
