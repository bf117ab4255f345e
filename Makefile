PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
export GRADIO_ANALYTICS_ENABLED := False

.PHONY: run test test-long lint bench services

run: $(STAMP)
	$(BIN)/reviewer serve

# What is timed runs alone, after the rest.
test: $(DEV_STAMP) services
	$(BIN)/pytest -q -n 2 --dist loadfile -m 'not long and not speed'
	$(BIN)/pytest -q -m 'speed and not long'

test-long: $(DEV_STAMP) services
	REVIEWER_LONG=1 $(BIN)/pytest -q -m long

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(DEV_STAMP)
	PYTHONPATH=tests $(BIN)/python bench/worklist.py
	PYTHONPATH=tests $(BIN)/python bench/op_round_trip.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet -e .
	touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet -e '.[dev,postgres]'
	touch $@ $(STAMP)

# Chromium is needed; without a PostgreSQL server its tests are skipped.
services:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		wanted=""; \
		[ -n "$$CHROMIUM" ] || command -v chromium google-chrome >/dev/null || wanted="chromium"; \
		ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || wanted="$$wanted postgresql"; \
		[ -z "$$wanted" ] || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$wanted; }; \
	elif [ -z "$$CHROMIUM" ] && ! command -v chromium google-chrome >/dev/null; then \
		echo "The browser tests need Chromium: install it, or set CHROMIUM to its path." >&2; exit 1; \
	fi
