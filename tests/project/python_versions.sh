#!/usr/bin/env bash
# tests/project/python_versions.sh [PYTEST OPTION...]: the test command of the README under every supported Python found here.
# Prints a row for docs/measured.md per version; one that is not installed is said to be missing.
set -uo pipefail
cd "$(dirname "$0")/.."
for minor in 11 12 13 14; do
  for python in "$(command -v "python3.$minor")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python; do
    [ -x "$python" ] && "$python" -c '' 2>/dev/null && break
    python=""
  done
  [ -n "$python" ] || { echo "| 3.$minor | not installed here | |"; continue; }
  place=$(mktemp -d)
  "$python" -m venv "$place" && "$place/bin/pip" install -q -e '.[test]' || { echo "| 3.$minor | installation failed | |"; continue; }
  said=$("$place/bin/python" -m pytest -n auto --dist worksteal -p no:cacheprovider "$@" 2>&1 | tail -1)
  echo "| $("$place/bin/python" -V | cut -d' ' -f2) | $said | $("$place/bin/python" -c 'import numpy, numba; print(f"numpy {numpy.__version__}, numba {numba.__version__}")') |"
  rm -rf "$place"
done
