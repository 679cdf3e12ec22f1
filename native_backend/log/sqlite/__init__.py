"""The embedded realm's log: one SQLite file in a directory."""
