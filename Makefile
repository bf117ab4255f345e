PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
export GRADIO_ANALYTICS_ENABLED := False

.PHONY: run test test-long lint bench browser

run: $(STAMP)
	$(BIN)/reviewer serve

test: $(DEV_STAMP) browser
	$(BIN)/pytest -q -n 2 -m 'not long'

test-long: $(DEV_STAMP) browser
	REVIEWER_LONG=1 $(BIN)/pytest -q -m long

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(DEV_STAMP)
	PYTHONPATH=tests $(BIN)/python bench/worklist.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet -e .
	touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet -e '.[dev,postgres]'
	touch $@ $(STAMP)

browser:
	@if [ -n "$$CHROMIUM" ] || command -v chromium >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq chromium; \
	else echo "The browser tests need Chromium: install it, or set CHROMIUM to its path." >&2; exit 1; fi
