"""The embedded realm's log: one SQLite file in a directory.

May import: the standard library, `native_backend.log`, this driver.
"""
