"""Commands that serving gateways answer, at their admin addresses."""
