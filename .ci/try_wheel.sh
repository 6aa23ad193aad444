#!/usr/bin/env bash
# Goes through the README as a stranger does, with the packages of dist/: an empty home,
# an empty environment, the sources of the sdist, and hookbridge from the wheel.
#
#   .ci/try_wheel.sh PYTHON TENSORFLOW [ENVIRONMENT]
#
# With ENVIRONMENT, such as .venv/tf215, its packages are seen instead of installed again.
# hookbridge is that of the wheel all the same.
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
# pip would compile all of TensorFlow and its needs; `no` stands for `--no-compile`.
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=no
"$1" -m venv "$work/env"
packages="$(echo "$root"/dist/*.whl)[tensorflow,tensorboard,estimator]"
if [ $# = 3 ]; then
    # Lines of a file `.pth` are folders with packages; files `.pth` there do not count.
    seen="$(cd "$root" && realpath "$3"/lib/python*/site-packages)"
    echo "$seen" >"$(echo "$work"/env/lib/python*/site-packages)/seen.pth"
    # The environment has hookbridge of this version too, that of the checkout.
    export PIP_NO_DEPS=1 PIP_FORCE_REINSTALL=1
else
    packages="$packages $2"
fi
tar -xzf "$root"/dist/*.tar.gz -C "$work" --one-top-level=sources --strip-components=1
cd "$work/sources"
"$work/env/bin/python" .ci/run_readme.py README.md $packages
"$work/env/bin/hookbridge" --version
"$work/env/bin/python" -I -c "import hookbridge; assert hookbridge.__file__.startswith('$work/env/')"
