"""Mapping tables made from shipped ones, and the documented rows."""
