"""Links: publishing and consuming, what they make of messages and events, and their credit."""
