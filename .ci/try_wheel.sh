#!/usr/bin/env bash
# Installs the wheel of dist/ into an empty environment and runs the README's programs.
#
#   .ci/try_wheel.sh PYTHON TENSORFLOW_REQUIREMENT
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$1" -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check \
    "$root"/dist/*.whl "$2"
cd "$work"
env/bin/hookbridge --version
env/bin/python "$root/.ci/run_readme.py" "$root/README.md"
