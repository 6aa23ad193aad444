#!/usr/bin/env bash
# Goes through the README as a stranger does, with the packages of dist/: an empty home,
# an empty environment, the sources of the sdist, and hookbridge from the wheel.
#
#   .ci/try_wheel.sh PYTHON TENSORFLOW_REQUIREMENT
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# Packages come from where pip is told to look; nothing else of the home is seen.
for file in "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    if [ -z "${PIP_CONFIG_FILE:-}" ] && [ -f "$file" ]; then
        export PIP_CONFIG_FILE="$file"
    fi
done
mkdir "$work/home"
export HOME="$work/home"
unset XDG_CONFIG_HOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$1" -m venv "$work/env"
tar -xzf "$root"/dist/*.tar.gz -C "$work" --one-top-level=sources --strip-components=1
cd "$work/sources"
"$work/env/bin/python" .ci/run_readme.py README.md "$(echo "$root"/dist/*.whl)[tensorflow,tensorboard,estimator]" "$2"
"$work/env/bin/hookbridge" --version
