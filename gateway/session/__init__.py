"""The gateway and its connections: a peer's facts, turned into submissions in the order they came."""
