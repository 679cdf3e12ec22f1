"""Transactions: the coordinator, what is posted and what is retired inside of one."""
