"""Runs the tests of this folder without pytest or any package, on whichever Python is asked: `python3.13 bare.py`.

The modules under test stand on the standard library alone; the packages above them are replaced by empty ones.
"""

import importlib
import pathlib
import sys
import traceback
import types

ROOT = pathlib.Path(__file__).parents[3]
MODULES = ("test_steps", "test_binding", "test_machine", "test_generators", "test_library")


def main() -> int:
    sys.path.insert(0, str(ROOT))
    for name in ("pullback", "pullback.capture"):
        package = types.ModuleType(name)
        package.__path__ = [str(ROOT.joinpath(*name.split(".")))]
        sys.modules[name] = package
    failed = count = 0
    for module in MODULES:
        for name, test in vars(importlib.import_module(f"tests.capture.bytecode.{module}")).items():
            if not name.startswith("test_"):
                continue
            count += 1
            try:
                test()
            except Exception:
                failed += 1
                print(f"{module}.{name}")
                traceback.print_exc()
    print(f"Python {sys.version.split()[0]}: {count - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
