#!/bin/sh
# Makes sure that there is a Chromium, node, and the packages that drive the page's tests, or says who will miss them.
#
# As root on a machine with apt Chromium is installed. The packages go to .work/page, apart from the repository's own files.
# With CI=true a missing part is a failure.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
packages="$here/../../.work/page"

browser() { [ -x /usr/bin/chromium ] || [ -x /usr/bin/chromium-browser ]; }

install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    echo "tools: installing the apt package chromium" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }
}

fetch() {
    command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || return 1
    cmp -s "$here/package-lock.json" "$packages/package-lock.json" && [ -d "$packages/node_modules" ] && return 0
    mkdir -p "$packages"
    cp "$here/package.json" "$here/package-lock.json" "$packages/"
    (cd "$packages" && npm ci --ignore-scripts --no-audit --no-fund --silent)
}

missing=
browser || install || missing="Chromium"
fetch || missing="${missing:+$missing and }playwright-core (node and npm)"
[ -z "$missing" ] && exit 0
if [ "${CI:-}" = true ]; then
    echo "tools: no $missing, and CI=true allows no skip" >&2
    exit 1
fi
echo "tools: no $missing; the tests of the page will skip" >&2
