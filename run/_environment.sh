# Sourced by the scripts of this folder: makes .venv in the checkout once, and again when requirements.txt or pyproject.toml changes.
# Sets $PYTHON to its interpreter.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
VENV="$PWD/.venv"
PYTHON="$VENV/bin/python"

find_python() {
    for candidate in "${GRAPHGPS_PEARL_PYTHON:-}" python3.11 python3.12 python3.13 python3 python; do
        if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$candidate"
            return 0
        fi
    done
    echo "error: Python 3.11, 3.12 or 3.13 is needed and none was found; set GRAPHGPS_PEARL_PYTHON to one" >&2
    return 1
}

install() {
    local stamp="$VENV/.installed" wanted base
    wanted=$(cat requirements.txt pyproject.toml | cksum)
    if [ -x "$PYTHON" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        return 0
    fi
    base=$(find_python) || return 1
    echo "installing into .venv (once; a few minutes) ..."
    "$base" -m venv "$VENV" || return 1
    # The second line puts the checkout itself into .venv, with the command graphgps-pearl.
    if ! { "$PYTHON" -m pip install --quiet --disable-pip-version-check -r requirements.txt &&
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; } 2>"$VENV/install.log"; then
        cat "$VENV/install.log" >&2
        echo "error: the installation failed; correct what it says above and start this script again" >&2
        return 1
    fi
    echo "$wanted" >"$stamp"
}

install || exit 1
