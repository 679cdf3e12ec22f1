"""Temporary nodes and their topics."""
