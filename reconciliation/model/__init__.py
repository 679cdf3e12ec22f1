"""What every step knows: windows, ranges, runs, schemas, classes of findings, settings."""
