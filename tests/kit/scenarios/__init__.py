"""Conversations that bring about what a row of a mapping table is about."""
