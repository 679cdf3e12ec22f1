"""Does the realm hold what the peers were told? Spark decides again from the records.

May import: pyspark, pyarrow, `native_backend`, `mappings`; kafka-python in `offsets` only.
"""
