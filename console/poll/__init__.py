"""Asking gateways: one poller each, for all viewers together, while a page is looked at."""
