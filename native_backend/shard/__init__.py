"""The states that this process owns: opened, counted, written as snapshots, trimmed."""
