"""Nodes and durables, their properties and rights, and the metadata that holds them."""
