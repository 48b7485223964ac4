"""Scripts that write pages and records, and campaigns that take long.

python tests                 # what there is
python tests pictures        # the one of that name, with its arguments
"""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent


def scripts() -> dict[str, Path]:
    """Files of tests that can be run, by name."""
    files = (path for path in TESTS.glob("*/**/[!_]*.py") if not path.name.startswith("test_"))
    return {path.stem: path for path in sorted(files) if "\nif __name__ == " in path.read_text(encoding="utf-8")}


def main() -> int:
    """Run the script that is named first; without a name, list them."""
    if len(sys.argv) < 2 or sys.argv[1] not in scripts():
        for name, path in scripts().items():
            summary = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
            print(f"{name:22} {re.sub(r'[`]', '', summary)}")
        return 2 if len(sys.argv) > 1 else 0
    path = scripts()[sys.argv.pop(1)]
    sys.argv[0] = f"{TESTS.name} {path.stem}"
    runpy.run_module(".".join(path.relative_to(TESTS).with_suffix("").parts), run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
