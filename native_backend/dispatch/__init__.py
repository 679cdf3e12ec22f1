"""Who of the links of a queue or durable gets the next event."""
