"""Selectors: which messages a consumer wants, in the words of JMS (`selector.py`)."""
