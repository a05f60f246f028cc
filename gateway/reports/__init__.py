"""What was used and what it cost: read from the hourly rollups, never from requests."""
