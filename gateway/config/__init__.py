"""The configuration: settings, limits, addresses."""
