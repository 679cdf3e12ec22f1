"""Jobs: read, transform, write."""
