"""The log port in memory, for simulations: one thread, one seed, faults on demand."""
