# lava from a fresh clone: `make run` shows it at work, `make test` checks all of it. Each target installs what it needs.

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -q
PURE := $(wildcard tests/unit tests/sim tests/scenario)
LIVE := $(wildcard tests/integration tests/compat tests/browser)
# What failed of these runs once more, alone: tests of real processes beside each other lose races that are the test's own.
ALONE = { echo "once more, alone, what failed:"; $(PYTEST) -n 0 -x --last-failed --last-failed-no-failures none $(1); }
# A file's tests share a cluster; the longest files begin (tests/conftest.py).
BY_FILE := --dist loadfile --no-loadscope-reorder

# Editable by a line with their folder: a finder in its place is imported at each start of Python, which takes twice as long with it.
BY_PATH := --config-settings editable_mode=compat

# What Python has compiled is kept, whatever the environment says: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# The system's Python first: one below a user's home folder cannot be executed by the other users that jobs run as.
PYTHON ?= $(shell for python in /usr/bin/python3 python3.11 python3 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$python; break; }; done)

# As root, tests run jobs and commands of other users, who must reach this folder. Where they cannot (below /root, say, or of a
# clone with umask 077), a copy is tested.
HIDDEN := $(shell test "$$(id -u)" != 0 || { folder="$(CURDIR)"; while test "$$folder"; do \
	test "$$(find "$$folder" -maxdepth 0 -perm -001)" || { echo "$$folder"; break; }; folder=$${folder%/*}; done; })
IN_COPY = copy=$$(mktemp -d /tmp/lava-checkout.XXXXXX) && trap 'rm -rf "$$copy"' EXIT && trap 'exit 130' INT TERM && umask 022 \
	&& echo "other users cannot reach $(HIDDEN): $$copy, a copy of this folder, is tested" >&2 \
	&& tar -c --exclude=./.venv --exclude=./build . | tar -x -C "$$copy" --no-same-owner && chmod -R a+rX "$$copy" \
	&& { test ! -d "$$copy/.git" || chmod -R go= "$$copy/.git"; } \
	&& $(MAKE) -C "$$copy" HIDDEN= $@

.PHONY: install run test static pure test-plain test-gpu test-on test-web bench bench-peers bench-check bench-keep bench-report soak coverage \
	docs pictures reference stubs clean
.DELETE_ON_ERROR:

install: .venv/.commands

.venv/.packages: pyproject.toml client/pyproject.toml
	@test -n "$(PYTHON)" || { echo "lava needs Python 3.11 or newer with its venv module: apt-get install python3 python3-venv" >&2; exit 1; }
	@echo "installing lava and what it needs in .venv (about a minute) ..." >&2
	@test -x $(BIN)/python -a -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(BY_PATH) --editable ".[mpi,dev]" --editable ./client
	@touch $@

.venv/.commands: .venv/.packages $(wildcard cli/*.py cli/native/*.[chp]* agent/starter/part/native/*.[ch]) proto/commands.py
	@$(BIN)/python -m cli.install_commands $(BIN)
	@touch $@

run: install
	@$(BIN)/python examples/run_main_job.py

ifneq ($(HIDDEN),)
test test-plain soak:
	@$(IN_COPY)
else
# mypy is one process, for which a core of several would wait.
test: install
	@$(MAKE) --jobs 2 --no-print-directory static pure
	LAVA_TEST_SLOW=$${LAVA_TEST_SLOW:-2} $(PYTEST) -n 4 $(BY_FILE) $(LIVE) || $(call ALONE,$(LIVE))

static: install
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo

pure: install
	$(PYTEST) -n 2 --dist worksteal $(PURE) || $(call ALONE,$(PURE))

# What runs commands and jobs, all in Python where it is native otherwise (docs/native.md).
test-plain: install
	LAVA_NATIVE=N $(PYTEST) -n 2 $(BY_FILE) tests/integration/commands tests/integration/starter tests/integration/agent tests/compat

# A test of so many seeds takes longer than faulthandler waits, whose look at a stack that changes may crash Python.
soak: install
	LAVA_SIM_SEEDS=5000 LAVA_PARTITION_SEEDS=10000 $(PYTEST) -o faulthandler_timeout=0 -n 2 tests/sim
	LAVA_TEST_EXAMPLES=10 LAVA_TEST_GANGS=200 $(PYTEST) -o faulthandler_timeout=0 -n 2 --dist worksteal tests/unit tests/integration/store \
		tests/integration/parallel/test_launchers.py
	$(PYTEST) -o faulthandler_timeout=0 tests/soak
endif

# The page in a real Chromium, with axe, and REST by schemathesis; what `make test` finds of these, it runs too.
test-web: install
	@test -x build/web-tools/bin/schemathesis || $(PYTHON) -m venv build/web-tools
	@build/web-tools/bin/pip install --quiet --disable-pip-version-check "schemathesis>=4"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "axe-playwright-python>=0.1.8"
	PATH="$$PATH:$(CURDIR)/build/web-tools/bin" LAVA_CHROMIUM_NEEDED=1 $(PYTEST) -n 0 tests/browser

# Beside nvidia-smi, on a host with an NVIDIA driver; elsewhere it says why it skips.
test-gpu: install
	$(PYTEST) -n 0 tests/gpu

# All tests in another Debian, SUITE=trixie or sid, with its Python and C library; as root, with debootstrap. RUN=... runs that instead,
# LEAST=1 has no more packages than lava needs.
test-on:
	@test -n "$(SUITE)" || { echo "make test-on SUITE=trixie" >&2; exit 2; }
	@LEAST="$(LEAST)" tests/support/on_debian.sh "$(SUITE)" "$(or $(RUN),make test)"

# One JSON object a line; ONLY=name runs one of them.
bench: install
	@$(BIN)/python benchmarks/run.py $(ONLY)

# Lava beside what is installed of Slurm, HyperQueue and mpiexec.hydra, in the same rounds: a table at the end.
bench-peers: install
	@$(BIN)/python benchmarks/peers/run.py $(ONLY)

# What is 30 % worse than in the last of benchmarks/results, by ratios to floors and peers; ALL=1 looks at all of it.
bench-check: install
	@$(BIN)/python benchmarks/kept/check.py $(if $(ALL),ALL=$(ALL))

# All that docs/performance.md shows, as a new file of benchmarks/results, and the page from it; NOTE=... is kept with it.
bench-keep: install
	@$(BIN)/python benchmarks/kept/keep.py "$(NOTE)"

# docs/performance.md and the table of README.md from the last of benchmarks/results.
bench-report: install
	@$(BIN)/python benchmarks/kept/report.py

# Which lines of the source no unit test runs; build/coverage/index.html shows them.
coverage: install
	$(PYTEST) -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-report=html:build/coverage tests/unit

# The pages as a site, build/docs/index.html; a link that leads nowhere is an error.
docs: install
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(BY_PATH) --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# docs/pictures of the page, in a Chromium, of a cluster with jobs of all kinds: a minute.
pictures: install
	@$(BIN)/python -m tests.browser.pictures

# docs/reference, made of the code's own tables; tests/unit/test_architecture.py says when it is out of date.
reference: install
	@$(BIN)/python -m docs.generate

# The Python code of proto/*.proto; tests/unit/test_architecture.py says when it is out of date.
stubs: install
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. proto/agent.proto

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
