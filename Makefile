# The one entry point for people. `make` alone says what there is.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo build test tools bench micro-bench soak fuzz e2e-vllm parity mutations test-deploy chart-files alerts-live dashboard-picture scale screenshots clean

PYTHON ?= python3
FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 30
VENV := .venv
PARITY := .work/parity
DEPLOY := .work/deploy

GRAFANA := .work/grafana
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
	@$(MAKE) --no-print-directory test-deploy

# The real parts that some tests run against. What can't be installed is named here, and the test that wants it names
# itself when it skips; with CI=true a missing part is a failure.
tools: $(VENV)/.installed $(GRAFANA)/.installed ## install what the tests need: Prometheus and Chromium (apt, as root), a Python environment, npm packages
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

soak: ## random traffic with random faults for SOAK_MINUTES (30), then a stream of 1 GB to a slow reader
	SOAK_MINUTES=$(SOAK_MINUTES) SOAK_STREAM_MIB=1024 cargo test --locked --test soak --test faults -- --nocapture \
		under_faults_every_request a_long_stream_to_a_slow_reader

mutations: ## break each promise of docs/transparency.md in a copy, and demand that its test fails (half an hour)
	$(PYTHON) tests/mutate.py

$(GRAFANA)/.installed: tests/prometheus/grafana/package.json
	@mkdir -p $(GRAFANA) && cp $< $(GRAFANA)/
	@if npm install --prefix $(GRAFANA) --silent --no-audit --no-fund; then \
		touch $@; \
	elif [ "$${CI:-}" = true ]; then \
		echo "tools: Grafana's types could not be installed by npm, and CI=true allows no skip" >&2; exit 1; \
	else \
		echo "tools: no Grafana types; the test of the dashboard's shape will skip" >&2; \
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

alerts-live: $(VENV)/.installed ## each alert seen firing in a real Prometheus, with shortened times (four minutes)
	cargo build --locked
	$(VENV)/bin/python tests/prometheus/alerts_live.py --spectap target/debug/spectap --work .work/alerts

dashboard-picture: $(VENV)/.installed ## draws docs/images/dashboard.svg from the dashboard's own queries (a minute)
	cargo build --locked
	$(VENV)/bin/python tests/prometheus/picture.py --spectap target/debug/spectap --work .work/picture --out docs/images/dashboard.svg

scale: $(VENV)/.installed build ## what many taps cost a Prometheus, measured on this machine (ten minutes)
	$(VENV)/bin/python tests/scale/scale.py --spectap target/release/spectap --work .work/scale

e2e-vllm: $(VENV)/.installed ## a real vLLM on the CPU, the official client, vLLM's counters beside spectap's (3 GB of disk)
	cargo build --locked
	$(VENV)/bin/python tests/e2e/vllm.py --spectap target/debug/spectap --work .work

parity: $(PARITY)/.installed ## real AIPerf through spectap, all numbers beside each other (1.2 GB of disk, two to three minutes)
	cargo build --locked
	$(PARITY)/venv/bin/python tests/parity/parity.py --spectap target/debug/spectap --work $(PARITY)
	$(PARITY)/venv/bin/python tests/parity/server_source.py --spectap target/debug/spectap --work $(PARITY)

$(PARITY)/.installed: tests/parity/requirements.txt tests/parity/pins.txt
	$(PYTHON) -m venv $(PARITY)/venv
	$(PARITY)/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $< -c tests/parity/pins.txt
	@touch $@

# The program of the image is the one that the tests have just built, linked once more: statically, for an empty image.
# UPDATE_SNAPSHOTS=1 rewrites the renderings in tests/deploy/snapshots.
test-deploy: ## image, Helm chart, Kustomize component and compose file, held against the real tools (600 MB of disk)
	@sh tests/e2e/install-prometheus.sh
	@PYTHON=$(PYTHON) sh tests/deploy/install.sh $(DEPLOY)/venv
	cargo rustc --locked --all-features --bin spectap -- -C target-feature=+crt-static -C strip=symbols
	@mkdir -p $(DEPLOY)/image
	@cp target/debug/spectap $(DEPLOY)/image/spectap
	@if [ -e $(DEPLOY)/venv/.installed ]; then $(DEPLOY)/venv/bin/python tests/deploy; else echo "test-deploy: skipped"; fi

chart-files: ## copy rules, alerts and dashboard from deploy/ into the chart, which can't reach out of its folder
	cp deploy/prometheus/rules.yml deploy/prometheus/alerts.yml helm/spectap/files/
	cp deploy/grafana/spectap.json helm/spectap/files/dashboard.json

clean: ## remove all that the targets above made
	cargo clean
	rm -rf $(VENV) .work fuzz/target fuzz/corpus fuzz/seeds
