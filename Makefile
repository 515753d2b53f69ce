# Two commands, each with all set-up, from a clean clone on a machine with Rust and Python 3.10+:
#   make demo    run a headline of each of five papers, and the same schemes on a current drive: a table and a figure
#   make test    all checks except those of `make test-long`
# A rule runs again only if its inputs have changed. Tests use Cargo's profile "dev", demo and benchmarks "release".

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := out/demo

RUST_SOURCES := $(shell find crates devices -name '*.rs' -o -name '*.toml')
WHEEL_SOURCES := pyproject.toml README.md Cargo.toml Cargo.lock $(RUST_SOURCES) \
  $(shell find python -type f -not -path '*/__pycache__/*' -not -name '*.so')

PLUGIN := python/flashtwin/flashtwin_nbdkit.so
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The package under test, built like the Rust tests and from the same dependencies.
TESTED := $(TARGET)/python
PYTHON_SOURCES := python tests experiments tools fuzz docs
PYTEST := $(BIN)/pytest -n auto --dist worksteal
COMMA := ,

.PHONY: demo test test-long check-lints check-rust check-python check-style check-examples check-counts bench validate drives fuzz mutants site lock plugin wheel

demo: $(VENV)/.flashtwin
	@rm -rf $(DEMO)
	@echo "Five papers: a headline of each where the paper measured it, and the same scheme on a current drive:"
	@$(BIN)/flashtwin study run headlines -o $(DEMO)
	@$(BIN)/flashtwin study show $(DEMO) --figure $(DEMO).png
	@echo "figure: $(DEMO).png"

# A named stage: its commands, and how long they took.
stage = @echo "== $(1)"; began=$$(date +%s); { $(2); } && echo "== $(1): $$(($$(date +%s) - began)) s"

# With REPORT_TIME=1 each test of Rust is listed with its time, an unstable option of the test harness.
REPORT_TIME ?=
ifdef REPORT_TIME
HOST := $(shell rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
RUST_TESTS := CARGO_TARGET_$(HOST)_RUNNER="env RUSTC_BOOTSTRAP=1" cargo test --workspace --tests --locked --no-fail-fast -- \
  -Zunstable-options --report-time
else
RUST_TESTS := cargo test -q --workspace --tests --locked --no-fail-fast
endif

# pip waits for the network while Cargo compiles. Lints and tests share build scripts and macros.
test:
	@echo "Lints and tests: 15 minutes on two cores from a clean clone, 5 of them compilation."
	@began=$$(date +%s); $(MAKE) -j2 check-rust check-style && $(MAKE) check-python && \
	  echo "All checks passed in $$((($$(date +%s) - began) / 60)) minutes."

check-lints:
	$(call stage,formatting of Rust,cargo fmt --all --check)
	$(call stage,lints of Rust,cargo clippy -q --workspace --all-targets --locked -- -D warnings)

check-rust: check-lints
	$(call stage,compilation of the tests of Rust,cargo test -q --workspace --tests --locked --no-run)
	$(call stage,tests of Rust,$(RUST_TESTS))

check-style: $(VENV)/.dev
	$(call stage,formatting$(COMMA) lints and types of Python,\
	  $(BIN)/ruff format -q --check $(PYTHON_SOURCES) && $(BIN)/ruff check -q $(PYTHON_SOURCES) && $(BIN)/mypy)

check-python: $(VENV)/.dev $(TESTED)/.built
	$(call stage,stubs of the bindings,PYTHONPATH=$(abspath $(TESTED)) \
	  $(BIN)/stubtest --ignore-disjoint-bases --allowlist tests/stubtest.txt flashtwin._core)
	$(call stage,tests of Python,PYTHONPATH=$(abspath $(TESTED)) $(PYTEST) --durations=5)

# Checks that need a release build or another run of the compiler.
test-long: $(VENV)/.flashtwin $(VENV)/.dev
	@$(MAKE) -j2 check-examples check-counts
	$(call stage,commands of the documentation and the wheel,$(PYTEST) tests/release --durations=5)

check-examples:
	$(call stage,examples of the documentation of Rust,cargo test -q --workspace --doc --locked)
	$(call stage,compilation of the fuzz targets,cargo check -q --manifest-path fuzz/Cargo.toml --locked)

# Instruction counts do not depend on other load.
check-counts:
	$(call stage,instructions per request,cargo run --release -q --locked -p flashtwin-bench held)

# Runs the commands of docs/validation.md and writes their results there; SLOW=1 adds the slow ones.
validate: export PATH := $(abspath $(BIN)):$(PATH)
validate: $(VENV)/.flashtwin
	python experiments/validate.py $(if $(SLOW),--slow)

# Compares the profiles fitted to published measurements with their tables, the CSV files in TABLES (docs/drives.md), and
# writes out/drives.html. RELEASE is the version to which the results belong.
drives: $(VENV)/.flashtwin
	@test -n "$(TABLES)" || { echo "make drives TABLES=DIR: the folder of the tables (docs/drives.md)" >&2; exit 1; }
	$(BIN)/python experiments/drives.py --tables $(TABLES) $(if $(RELEASE),--release $(RELEASE))

# Runs every fuzz target, or those of TARGETS, for SECONDS and prints a table.
SECONDS ?= 60
fuzz: $(VENV)/.flashtwin
	$(BIN)/pip install -q --require-hashes -r requirements/fuzz.txt || true
	$(BIN)/python fuzz/run.py --seconds $(SECONDS) $(TARGETS)

# Mutation testing of the model crate: every Nth mutant (docs/mutants.md). Needs `cargo install cargo-mutants`.
SHARD ?= 1/14
mutants: $(VENV)/.python
	$(BIN)/pip install -q --require-hashes -r requirements/mutants.txt
	$(BIN)/python tools/mutants/run.py --shard $(SHARD)

# The documentation for a browser: out/site/README.html.
site: $(VENV)/.dev
	$(BIN)/sphinx-build -q -W --keep-going -c docs -d out/site.cache . out/site

# The test dependencies include libCacheSim, an independent simulator for comparison.
bench: $(VENV)/.flashtwin $(VENV)/.dev
	@cargo run --release -q --locked -p flashtwin-bench
	@$(BIN)/python tools/bench_commands.py

$(VENV)/.python: requirements/demo.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed; set PYTHON=")'
	@command -v cargo >/dev/null || { echo "Rust 1.88 or newer is needed: no cargo on the PATH" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/demo.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

# The wheel and the source distribution, in dist/.
wheel: dist/.built

# The plugin that `flashtwin serve` loads into nbdkit; part of the wheel.
plugin: $(PLUGIN)

$(PLUGIN): Cargo.toml Cargo.lock $(RUST_SOURCES)
ifeq ($(shell uname),Linux)
	cargo build -q --release --locked -p flashtwin-nbdkit
	strip --strip-debug -o $@ $(TARGET)/release/libflashtwin_nbdkit.so
endif

dist/.built: $(VENV)/.python $(WHEEL_SOURCES) | plugin
	@rm -rf dist
	$(BIN)/maturin build -q --release --locked --out dist
	$(BIN)/maturin sdist --out dist 2>&1 | tail -1
	@touch $@

$(VENV)/.flashtwin: dist/.built
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	@touch $@

# Not by maturin: its environment would make Cargo rebuild the bindings after each `cargo clippy`.
$(TESTED)/.built: $(WHEEL_SOURCES)
ifeq ($(shell uname),Darwin)
	cargo rustc -q --locked -p flashtwin-python --lib -- -C link-arg=-undefined -C link-arg=dynamic_lookup
else
	cargo build -q --locked -p flashtwin-nbdkit -p flashtwin-python
endif
	@rm -rf $(TESTED)
	cp -r python $(TESTED)
ifeq ($(shell uname),Darwin)
	cp $(TARGET)/debug/lib_core.dylib $(TESTED)/flashtwin/_core.abi3.so
else
	cp $(TARGET)/debug/lib_core.so $(TESTED)/flashtwin/_core.abi3.so
	cp $(TARGET)/debug/libflashtwin_nbdkit.so $(TESTED)/flashtwin/flashtwin_nbdkit.so
endif
	@touch $@

# Updates the pinned versions; needs uv.
lock: export UV_CUSTOM_COMPILE_COMMAND = make lock
lock:
	uv pip compile -q pyproject.toml --extra plot --group build --universal --python-version 3.10 \
	  --generate-hashes --no-annotate -o requirements/demo.txt
	uv pip compile -q pyproject.toml --extra plot --group dev --universal --python-version 3.10 \
	  --generate-hashes --no-annotate -c requirements/demo.txt -o requirements/dev.txt
	uv pip compile -q requirements/fuzz.in --universal --python-version 3.10 --generate-hashes --no-annotate \
	  -o requirements/fuzz.txt
	uv pip compile -q requirements/mutants.in --universal --python-version 3.10 --generate-hashes --no-annotate \
	  -o requirements/mutants.txt
