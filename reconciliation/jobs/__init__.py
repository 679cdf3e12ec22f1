"""Jobs: read, transform, write. May import: pyspark, `reconciliation`."""
