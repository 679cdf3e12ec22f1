"""Realms, logs and clocks for tests."""
