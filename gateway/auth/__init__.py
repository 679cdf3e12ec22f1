"""Who a peer is: SASL mechanisms, users, passwords, certificates."""
