"""What judging a large realm costs, beside DuckDB on the same records."""
