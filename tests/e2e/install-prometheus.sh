#!/bin/sh
# Makes sure that `prometheus` and `promtool` are on the PATH, or says who will miss them.
#
# As root on a machine with apt the package is installed, with its services kept from starting: a test starts its own
# server on its own port. With CI=true a missing tool is a failure.
set -eu

present() { command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; }

install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    # Exit code 101 tells the package's scripts that no service may be started here.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod +x "$policy"
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends prometheus >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null; }
}

present && exit 0
echo "tools: installing the apt package prometheus" >&2
install || true
present && exit 0
if [ "${CI:-}" = true ]; then
    echo "tools: prometheus and promtool are not on the PATH, and CI=true allows no skip" >&2
    exit 1
fi
echo "tools: no prometheus; tests that need promtool or a real scrape will skip" >&2
