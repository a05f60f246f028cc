"""`/admin/api`: what operators do, as JSON."""
