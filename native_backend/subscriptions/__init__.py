"""Subscriptions: what a consuming link holds of the realm."""
