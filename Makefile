# realmgate: `make help` says what there is. Nothing is done twice: what was made has a stamp in .cache/.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
REALM ?= embedded
SEED ?= 1
SECONDS ?= 600
BENCH ?=
PYTEST ?=
TORTURE ?=
CRASH_POINTS ?=
ROUNDS ?= 20
RUNS ?= 20
HISTORIES ?=
DIST ?= dist
PYTHONS ?=
BROKERS ?= 1
SANITIZE ?=
BIN := .venv/bin
ROOMS := console gateway mappings native_backend reconciliation transformers
EXTENSIONS := gateway/amqp/_deliveries.c gateway/amqp/_sends.c gateway/frames/_frames.c native_backend/log/octets.c \
	native_backend/log/kafka/column_producer.c transformers/message/_sections.c
HEADERS := native_backend/log/loaded_library.h native_backend/log/octets.h native_backend/log/kafka/librdkafka.h
CODE := $(ROOMS) bench deploy tests

.PHONY: help setup demo test test-long test-all check run kafka kafka-stop bench simulate fuzz torture hostile histories shake mappings-check wheels lock clean prerequisites-test prerequisites-long

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .cache/setup.stamp .cache/jars.stamp ## .venv with every dependency by hash, and .venv/bin/realmgate

demo: setup ## the whole path once, explained (REALM=embedded or kafka)
	@$(BIN)/python deploy/demo/demo.py --realm $(REALM)

test: prerequisites-test check ## check, then the gate: real Kafka, Spark, foreign clients; under 12 minutes (PYTEST=args)
	@$(BIN)/python -m $(if $(PYTEST),pytest $(PYTEST),tests.lanes gate)

test-long: prerequisites-long setup ## the rest of the suite: more clients, all contracts on Kafka, torture; an hour
	@$(BIN)/python -m tests.lanes long

test-all: prerequisites-long check ## both
	@$(BIN)/python -m tests.lanes all

check: setup ## format, lint, types, import rules, tables, tidiness; under a minute
	@$(BIN)/ruff format --check --quiet $(CODE) || { echo "check: run .venv/bin/ruff format on the files above" >&2; exit 1; }
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/mypy $(addprefix -p ,$(ROOMS) bench tests) & types=$$!; \
	  { $(BIN)/lint-imports --no-logo && $(BIN)/realmgate mappings check && $(BIN)/python -m pytest tests/test_tidy.py; } || \
	    { wait; exit 1; }; wait $$types

run: setup ## serve on the embedded realm (deploy/embedded.yaml); says where
	@$(BIN)/realmgate serve --config deploy/embedded.yaml

kafka: ## a real Kafka on loopback; prints its address (KAFKA_PORT, KAFKA_DIR; BROKERS=3 for a replicated one)
	@deploy/kafka/$(if $(filter 3,$(BROKERS)),cluster,start).sh

kafka-stop: ## stop it; its data stays in var/kafka
	@deploy/kafka/stop.sh

bench: setup ## measure against Artemis and a bare producer, in one run (BENCH=--quick)
	@deploy/prerequisites.sh bench
	@$(BIN)/python -m bench $(BENCH)

simulate: setup ## one simulated world (SEED=n)
	@$(BIN)/python -m tests.simulation --seed $(SEED)

fuzz: setup ## bad input for SECONDS=600, in process and over sockets (SEED=n, SANITIZE=1: C parts sanitized); finds: .cache/fuzz
	@$(if $(SANITIZE),tests/fuzz/sanitized.sh) $(BIN)/python -m tests.fuzz --seed $(SEED) --seconds $(SECONDS)

torture: setup ## kill and starve a real gateway and its realm, then look for what was lost (SEED=n REALM=kafka BROKERS=3 CRASH_POINTS=20 TORTURE=args)
	@$(BIN)/python -m tests.torture --seed $(SEED) --realm $(if $(filter 3,$(BROKERS)),cluster,$(REALM)) $(if $(CRASH_POINTS),--crash-points $(CRASH_POINTS)) $(TORTURE)

hostile: setup ## what others notice of hostile peers of ten kinds, 5 minutes (SEED=n REALM=kafka HOSTILE=args)
	@$(BIN)/python -m bench.hostile --seed $(SEED) --realm $(REALM) $(HOSTILE)

histories: setup ## live RUNS=20 honest histories and reconcile each with ledgers: nothing may be found (SEED=n REALM=kafka HISTORIES=args)
	@$(BIN)/python -W ignore -m tests.reconciliation.histories --seed $(SEED) --runs $(RUNS) --realm $(REALM) $(HISTORIES)

shake: setup ## the tests that broke on busy machines, under what broke them (ROUNDS=20)
	@$(BIN)/python -m tests.shake --rounds $(ROUNDS)

mappings-check: setup ## is every combination of every profile decided by exactly one rule?
	@$(BIN)/realmgate mappings check

wheels: setup ## wheels for each Python from 3.11 to 3.13 that is here, into dist/ (DIST=dir PYTHONS=3.11)
	@PYTHONS="$(PYTHONS)" deploy/python/wheels.sh $(DIST)

lock: setup ## choose versions anew; then review the difference
	@cd deploy/python && ../../$(BIN)/uv pip compile -q --no-header --no-annotate --generate-hashes --python-version 3.11 \
	  --constraint ../../requirements.lock build.in -o build.lock
	@$(BIN)/uv pip compile -q --no-header --no-annotate --generate-hashes --python-version 3.11 --extra dev \
	  pyproject.toml -o requirements.lock
	@for pom in deploy/kafka tests/kit/artemis tests/interop/jms tests/interop/spring; do deploy/maven/class-path.sh --lock $$pom/pom.xml; done

clean: ## forget what was made: .venv, .cache (downloads included); var/ and its data stay
	@rm -rf .venv .cache build dist $(EXTENSIONS:.c=.*.so)

prerequisites-test prerequisites-long:
	@deploy/prerequisites.sh $(@:prerequisites-%=%)

# --no-build-isolation: the packages that come as source are built by the build tools locked in build.lock, not by
# whatever is newest today.
.cache/setup.stamp: pyproject.toml requirements.lock deploy/python/build.lock $(EXTENSIONS) $(HEADERS)
	@PYTHON=$(PYTHON) deploy/prerequisites.sh run
	@mkdir -p .cache
	@[ -x $(BIN)/python ] || { echo "setup: making .venv" >&2; $(PYTHON) -m venv .venv; }
	@echo "setup: installing the locked dependencies (the first time: a download of about 600 MB)" >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r deploy/python/build.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-build-isolation --require-hashes -r requirements.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@

.cache/jars.stamp: reconciliation/engine/connector.py reconciliation/engine/class_archive.py .cache/setup.stamp
	@if $(BIN)/realmgate reconcile --fetch-jars >/dev/null; then touch $@; else \
	  echo "setup: all but reconciling a realm on Kafka works; for that, later: $(BIN)/realmgate reconcile --fetch-jars" >&2; fi
