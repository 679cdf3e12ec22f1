"""What operators and the ends of durables do: purge, seek, move, delete."""
