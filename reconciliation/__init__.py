"""Does the realm hold what the peers were answered? Spark decides again from the records."""
