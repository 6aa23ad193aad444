#!/bin/sh
# Prints the first working Python of the versions given, in their order.
#
#   .ci/find_python.sh 3.10 3.11
#
# A candidate counts only if it runs: a pyenv shim, for instance, is on the PATH
# whether or not its version is selected. It must be able to make an environment
# with pip in it (Debian's python3 cannot without python3-venv).
set -u

works() { # works PYTHON VERSION
    "$1" - "$2" >/dev/null 2>&1 <<'EOF'
import sys
import ctypes, ensurepip, ssl, venv
sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1])
EOF
}

pyenv_roots="${PYENV_ROOT:-} ${HOME:-}/.pyenv"
old_ifs=$IFS
IFS=:
for directory in $PATH; do
    case $directory in
        */shims) pyenv_roots="$pyenv_roots ${directory%/shims}" ;;
    esac
done
IFS=$old_ifs

for version in "$@"; do
    candidates="python$version python3 python /usr/bin/python$version"
    candidates="$candidates /usr/local/bin/python$version"
    candidates="$candidates /opt/homebrew/bin/python$version"
    for root in $pyenv_roots; do
        for found in "$root"/versions/"$version".*/bin/python; do
            candidates="$candidates $found"
        done
    done
    for found in "${HOME:-}"/.local/share/uv/python/*/bin/python"$version"; do
        candidates="$candidates $found"
    done
    for candidate in $candidates; do
        if command -v "$candidate" >/dev/null 2>&1 && works "$candidate" "$version"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            exit 0
        fi
    done
done
echo "No working Python of version $* was found." >&2
exit 1
