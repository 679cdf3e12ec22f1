"""What PySpark asks the JVM for by name, asked once.

With each column that it makes it asks for a class such as `functions`, and for a method of it. py4j keeps no answer:
Java looks for the class in each package that is imported, and each look searches every jar of Spark. Source: py4j
0.10.9, `java_gateway.py`.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView  # type: ignore[import-untyped]
from pyspark import SparkContext


class _Class(JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


class _View(JVMView):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if type(member) is JavaClass:  # what is a package now may be a class when a jar was added
            member.__class__ = _Class
            self.__dict__[name] = member
        return member


def keep_classes() -> Any:
    """From now on, for the session of this process; what PySpark asks. None: there is no session."""
    jvm = SparkContext._jvm
    if type(jvm) is JVMView:
        jvm.__class__ = _View
    return jvm
