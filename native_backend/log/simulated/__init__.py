"""The log port in memory, for simulations: one thread, one seed, faults on demand.

May import: the standard library, `native_backend.log`, this driver.
"""
