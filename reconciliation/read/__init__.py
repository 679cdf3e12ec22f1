"""What is read: the realm's topics or a snapshot, landed as Parquet, and the catalog of it."""
