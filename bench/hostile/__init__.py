"""Peers that mean ill beside a publisher and a consumer that do not: what the two notice of it."""
