"""`realmgate` with one place of its code changed: python -P mutated.py MODULE OLD NEW WORDS...

The text OLD stands once in that module; it is NEW when the module is imported. Nothing is written.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType


class _Changed(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, old: str, new: str) -> None:
        super().__init__(name, path)
        self._old, self._new = old, new

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        text = self.get_data(self.path).decode()
        if text.count(self._old) != 1:
            raise ImportError(f"{fullname} has the text {text.count(self._old)} times: {self._old}")
        return compile(text.replace(self._old, self._new), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, old: str, new: str) -> None:
        self._module, self._old, self._new = module, old, new

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        assert spec is not None and spec.origin is not None
        return importlib.util.spec_from_loader(fullname, _Changed(fullname, spec.origin, self._old, self._new))


if __name__ == "__main__":
    sys.meta_path.insert(0, _Finder(*sys.argv[1:4]))
    sys.argv[1:4] = []
    from gateway.cli.main import main

    main()
