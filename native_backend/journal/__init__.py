"""The journal: settlements in groups, the lease, recovery."""
