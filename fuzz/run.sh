#!/bin/sh
# Runs every fuzz target for a while, or those that are named: fuzz/run.sh [SECONDS [TARGET …]]
# Ends with 1 if any of them found something; the inputs are then kept in fuzz/artifacts.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift

if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: cargo-fuzz is missing; cargo install --locked cargo-fuzz" >&2
    exit 1
fi
# The sanitizer is a flag of nightly compilers; a stable one takes it when it is told to act like one.
if cargo +nightly --version >/dev/null 2>&1; then
    fuzz() { cargo +nightly fuzz "$@"; }
else
    fuzz() { RUSTC_BOOTSTRAP=1 cargo fuzz "$@"; }
fi

rm -rf fuzz/seeds
fuzz/seeds.sh fuzz/seeds
targets=${*:-$(fuzz list)}
for target in $targets; do
    fuzz build "$target"
done

found=
for target in $targets; do
    echo "fuzz: $target for $seconds s"
    mkdir -p "fuzz/corpus/$target"
    case $target in
    splitter) dictionary=events largest=1024 ;;
    reply | strip) dictionary=events largest=4096 ;;
    heads) dictionary=heads largest=2048 ;;
    decoder) dictionary=codings largest=2048 ;;
    splice) dictionary=requests largest=4096 ;;
    adapter_*) dictionary=payloads largest=2048 ;;
    *) dictionary=events largest=4096 ;;
    esac
    fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -max_len="$largest" -timeout=20 -rss_limit_mb=2048 \
        -dict="fuzz/dictionaries/$dictionary.dict" -print_final_stats=1 || found="$found $target"
done
if [ -n "$found" ]; then
    echo "fuzz: found something in$found; the inputs are in fuzz/artifacts" >&2
    exit 1
fi
