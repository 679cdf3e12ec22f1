"""Classes of the JVM are asked for once, as the installed py4j and PySpark let us."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reconciliation.engine.known_classes import keep_classes


def test_a_class_and_its_methods_are_kept_and_packages_are_not(session: SparkSession) -> None:
    jvm = keep_classes()
    functions = jvm.functions
    assert jvm.functions is functions and functions.col is functions.col
    assert jvm.java is not jvm.java
    assert [row[0] for row in session.range(2).select(F.col("id") + 1).collect()] == [1, 2]
