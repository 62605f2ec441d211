# The one entry point for people. `make` alone says what there is.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo build test tools screenshots bench micro-bench fuzz e2e-vllm parity clean

PYTHON ?= python3
FUZZ_SECONDS ?= 60
VENV := .venv
PARITY := .work/parity
export SPECTAP_TEST_PYTHON := $(CURDIR)/$(VENV)/bin/python
export RUSTDOCFLAGS := -D warnings

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## the whole thing on this machine: simulated engine, live traffic, the page, live table (Ctrl-C ends it)
	cargo run --locked -- demo

build: ## the release binary, target/release/spectap
	cargo build --locked --release

test: tools ## everything that a change must pass; with CI=true nothing may be skipped
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path benches/hop/Cargo.toml --check
	cargo clippy --locked --all-targets --all-features -- -D warnings
	cargo clippy --locked -- -D warnings
	$(PYTHON) .ci/licences.py
	@if cargo nextest --version >/dev/null 2>&1; then \
		echo "cargo nextest run --locked --all-features"; cargo nextest run --locked --all-features; \
	else \
		echo "cargo test --locked --all-features"; cargo test --locked --all-features --lib --bins --tests; \
	fi
	cargo test --locked --all-features --doc
	cargo doc --locked --no-deps --all-features

# The real parts that some tests run against. What can't be installed is named here, and the test that wants it names
# itself when it skips; with CI=true a missing part is a failure.
tools: $(VENV)/.installed ## install what the tests need: Prometheus and Chromium (apt, as root), a Python environment, two npm packages
	@sh tests/e2e/install-prometheus.sh
	@sh tests/page/install.sh

$(VENV)/.installed: tests/e2e/requirements.txt
	@if $(PYTHON) -m venv $(VENV) && $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $<; then \
		touch $@; \
	elif [ "$${CI:-}" = true ]; then \
		echo "tools: the Python environment $(VENV) could not be made, and CI=true allows no skip" >&2; exit 1; \
	else \
		echo "tools: no Python environment; tests that need prometheus-client will skip" >&2; \
	fi

screenshots: ## pictures of the page, in .work/page/pictures; two and a half minutes
	@CI=true sh tests/page/install.sh
	cargo build --locked
	SPECTAP_BINARY=target/debug/spectap SPECTAP_PAGE_PACKAGES=.work/page node tests/page/screenshots.mjs .work/page/pictures

fuzz: ## every fuzz target for FUZZ_SECONDS each (60); what one finds stays in fuzz/artifacts
	fuzz/run.sh $(FUZZ_SECONDS)

# BENCH_SPECTAP=FILE measures another binary; BENCH_ROUNDS, BENCH_SECONDS, BENCH_ONLY and BENCH_PEERS make it longer or
# shorter, as docs/benchmarks.md tells.
bench: $(if $(BENCH_SPECTAP),,build) ## the hop beside nginx, HAProxy, Envoy and others, half an hour; rewrites docs/benchmarks.md
	sh benches/hop/peers/install.sh .work/bench
	cargo build --locked --release --manifest-path benches/hop/Cargo.toml --target-dir target
	target/release/hop-bench run

micro-bench: ## micro-benchmarks of the observer and of the memory that figures take
	cargo bench --locked

e2e-vllm: $(VENV)/.installed ## a real vLLM on the CPU, the official client, vLLM's counters beside spectap's (3 GB of disk)
	cargo build --locked
	$(VENV)/bin/python tests/e2e/vllm.py --spectap target/debug/spectap --work .work

parity: $(PARITY)/.installed ## real AIPerf through spectap, all numbers beside each other (1.2 GB of disk, two to three minutes)
	cargo build --locked
	$(PARITY)/venv/bin/python tests/parity/parity.py --spectap target/debug/spectap --work $(PARITY)

$(PARITY)/.installed: tests/parity/requirements.txt tests/parity/pins.txt
	$(PYTHON) -m venv $(PARITY)/venv
	$(PARITY)/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $< -c tests/parity/pins.txt
	@touch $@

clean: ## remove all that the targets above made
	cargo clean
	rm -rf $(VENV) .work fuzz/target fuzz/corpus fuzz/seeds
