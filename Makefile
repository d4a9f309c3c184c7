# Everything runs from an own virtual environment, made on first use: only Python 3.11 (or newer) and make are needed.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
TORCH := .cache/torch
BROWSERS := chromium chromium-driver firefox-esr
MODELS := torch==2.13.0 transformers==5.23.0 expecttest==0.3.0
TORCH_TESTS := tests/frontends tests/torch_backend tests/conformance/test_torch.py tests/catalogue/test_against_torch.py \
	tests/catalogue/test_promotion_against_torch.py tests/catalogue/test_signatures_against_torch.py
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# the suite starts more than a hundred processes: without bytecode each of them compiles all modules again, for a second
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test browser-test report-assets test-torch check bench bench-guard cases clean

help:
	@echo "make demo    classify handwritten digits on the emulated device (sets everything up first)"
	@echo "make test    run the whole suite"
	@echo "make browser-test  the page of spyrec report in real browsers; on Debian it installs them"
	@echo "make test-torch  what needs PyTorch: importers, references; in an environment of its own"
	@echo "make check   lint, format, types, layers, freshness of generated files"
	@echo "make bench   measure, print ratios as JSON"
	@echo "make bench-guard  measure for two minutes, and say what got worse since the committed figures"
	@echo "make report-assets  join the modules of the report's page to one script (read the diff of the sources)"
	@echo "make cases   rewrite the generated files: schemas, docs/ops.md, type stubs, golden bundles (read the diff)"
	@echo "make clean   remove the environment and all caches"

# pip is asked only when the list of dependencies is newer than the last complete installation.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "python3.11 or newer is needed"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "python3.11 or newer is needed; name it with PYTHON=..."; exit 1; }
	@# a venv whose creation failed half way has a python and no pip: it is made again, not kept
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "making the virtual environment $(VENV)"; "$(PYTHON)" -m venv --clear $(VENV); }
	@echo "installing spyrec and its tools into $(VENV)"
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/python examples/digits/classify.py

test: $(STAMP)
	@$(BIN)/python scripts/absent_extras.py
	@$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --quiet --ignore=tests/report/browser
	@echo "left out: tests/report/browser, the report's page in real browsers (make browser-test)"

# Debian has no driver of Firefox: it comes with the extra browser, or from the path.
browser-test: $(STAMP)
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null && command -v firefox-esr >/dev/null || \
	  { echo "installing $(BROWSERS) from Debian's packages"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(BROWSERS); } >&2
	@$(BIN)/python -m pytest --quiet tests/report/browser

report-assets: $(STAMP)
	@$(BIN)/python scripts/build_report_assets.py

# In an environment of its own, so that the suite is seen to pass without torch.
$(TORCH)/installed: pyproject.toml constraints.txt
	@echo "installing torch and transformers into $(TORCH)"
	@"$(PYTHON)" -m venv --clear $(TORCH)
	@$(TORCH)/bin/python -m pip install -qq --constraint constraints.txt $(MODELS) --editable '.[dev]'
	@touch $@

test-torch: $(TORCH)/installed
	@$(TORCH)/bin/python -m pytest --numprocesses 2 --dist worksteal --quiet $(TORCH_TESTS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/generated_files.py --check

bench: $(STAMP)
	@$(BIN)/python -m benchmarks

bench-guard: $(STAMP)
	@$(BIN)/python -m benchmarks.guard

cases: $(STAMP)
	$(BIN)/python scripts/generated_files.py

clean:
	rm -rf $(VENV) .cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
