"""What the dashboard shows as it happens: one look a second in each gateway, shared by all who watch."""
