# Two commands for a start: `make demo` shows Stoker at work, `make test` installs what the tests need and runs them.

PYTHON ?= python3
BIN := .venv/bin
NODE := .venv/node/node_modules/.bin
PYTEST_ARGS ?=
# One for each core computes; three more have tests that wait for other processes most of the time.
WORKERS ?= $(shell expr $$(nproc) + 3)
# Seconds after which `make test-rest` begins no more tests.
BUDGET ?= 2400
SEEDS ?= 1000
SERVERS ?= 100
# For `make fuzz`: inputs for all subjects together.
INPUTS ?= 20000
CHAOS ?= 1200
# The Debian of `make fresh`: the oldest that is supported.
SUITE ?= bookworm
# What `make check` has run.
ARCHITECTURE := tests/unit/test_architecture.py tests/unit/test_names.py
CHECKED := $(ARCHITECTURE:%=--ignore %) --deselect tests/doc/test_prose.py::test_everything_else_is_clean
# What Python has compiled is kept, wherever that is turned off: a daemon's start takes a third less.
export PYTHONDONTWRITEBYTECODE =
# With V=1 all commands and all that they print are shown.
export V
ifndef V
MAKEFLAGS += --silent
endif
QUIET := tools/quiet

.PHONY: guests heat heat-suites horizon demo demo-cloud serve cloud templates pictures cloud-databases test test-full test-rest test-long fresh test-cloud chaos chaos-cloud fuzz mutate attack quick quick-tests check lint mypy prose ready prepared test-deps console servers all-servers images simulate bench bench-check docs dist image constraints clean

demo: .venv/client.stamp
	$(BIN)/python examples/demo.py

demo-cloud: cloud-databases
	PYTHONPATH=tests $(BIN)/python examples/demo_cloud.py

serve: .venv/client.stamp
	$(BIN)/stoker serve --data-dir var/stoker --host 127.0.0.1 --port 8004 --conductors 3

# The cloud of the tests, for people, and for tests with STOKER_TEST_CLOUD=var/cloud; it runs until Ctrl-C.
# INCLUDE="octavia …" starts services that it does not need.
cloud: cloud-databases
	cd tests && ../$(BIN)/python -m harness.cloud '$(CURDIR)/var/cloud' --remove $(INCLUDE:%=--with %)

# A stack of each HOT template below CHECKOUT, such as a clone of openstack/heat-templates; not part of the tests.
templates: $(if $(STOKER_TEST_CLOUD),.venv/test.stamp,cloud-databases)
	PYTHONPATH=tests $(BIN)/python tests/cloud/run_templates.py $(or $(CHECKOUT),$(error CHECKOUT=DIRECTORY is missing)) $(ARGS)

# The pictures of the console in doc/images, light and dark, those of the examples on a cloud; ONLY="drift server" takes some.
pictures: all-servers $(if $(STOKER_TEST_CLOUD),,cloud-databases)
	PYTHONPATH=tests $(BIN)/python tests/cloud/take_pictures.py $(ONLY)

# What a commit can break.
test: ready
	$(BIN)/python -m pytest -q -n $(WORKERS) --tier test --seeds 4 $(CHECKED) $(PYTEST_ARGS)

# All but what takes minutes; then faults are planted in what the last ten commits have changed of the kernel.
test-full: prepared
	$(BIN)/python -m pytest -q -n $(WORKERS) --tier full -m "not alone" $(CHECKED) $(PYTEST_ARGS)
	$(BIN)/python -m pytest -q --tier full -m alone $(or $(PYTEST_ARGS),tests/process tests/services) || [ $$? -eq 5 ]  # 5: PYTEST_ARGS choose none of them
	$(if $(PYTEST_ARGS),,$(if $(shell git rev-parse --quiet --verify HEAD~10 2>/dev/null),$(MAKE) --no-print-directory mutate CHANGED=HEAD~10 ARGS="--budget 900"))

# Of that, what `make test` has left out, as far as the time goes.
test-rest: prepared
	end=$$(($$(date +%s) + $(BUDGET))); \
	$(BIN)/python -m pytest -q --tier rest --budget $(BUDGET) -m alone tests/process tests/services; alone=$$?; \
	$(BIN)/python -m pytest -q -n $(WORKERS) --tier rest --budget $$((end - $$(date +%s))) -m "not alone" $(CHECKED); others=$$?; \
	[ $$alone -eq 0 ] && { [ $$others -eq 0 ] || [ $$others -eq 5 ]; }  # 5: no time was left for any

test-long: test-deps images .venv/ansible.stamp .venv/suites/installed.stamp
	$(BIN)/python -m pytest -q -m long $(PYTEST_ARGS)
	$(if $(PYTEST_ARGS),,$(MAKE) --no-print-directory fresh SUITE=trixie)

# The tests that others have written for Heat and its clients, as far as they need no cloud; a part of `make test-long`.
heat-suites: .venv/cloud/installed.stamp .venv/suites/installed.stamp
	$(BIN)/python -m pytest -q -m long tests/suites $(PYTEST_ARGS)

# The first two commands of the README, on a machine that has nothing: a minimal Debian in a folder, as root only.
fresh: .venv/test.stamp
	tools/install-test-deps fresh
	tools/fresh/run $(SUITE) $(if $(PYTEST_ARGS),PYTEST_ARGS="$(PYTEST_ARGS)")

# All types of clouds on a real one, with the tests that `make test` leaves out.
test-cloud: prepared
	$(BIN)/python -m pytest -q -n $(WORKERS) tests/cloud $(PYTEST_ARGS)

# Real daemons while all that can fail fails, CHAOS seconds on each set of back ends, or on SET; the reports are in var/chaos.
chaos: all-servers
	PYTHONPATH=tests $(BIN)/python -m chaos.run --seconds $(CHAOS) $(SET:%=--set %) $(SEED:%=--seed %)

# As test-cloud with twelve servers: conductors are killed and services fail, while stacks are created, updated and deleted.
chaos-cloud: test-deps
	$(BIN)/python -m pytest -q -s tests/cloud/test_chaos.py --servers $(SERVERS) $(if $(SEED),--seed $(SEED)) $(PYTEST_ARGS)

# Random inputs to all parts that take some, or to SUBJECTS; those that break the law become files in tests/fuzz/cases.
fuzz: .venv/test.stamp
	cd tests && ../$(BIN)/python -m fuzz --inputs $(INPUTS) $(if $(SEED),--seed $(SEED)) $(SUBJECTS)

# Plants faults in the code that safety rests on, one at a time, and names those that no test notices: all, those in lines
# that differ from commit CHANGED, or those in PATHS.  What a stopped run has tried is not tried again.
mutate: .venv/test.stamp
	PYTHONPATH=tests $(BIN)/python -m mutate $(if $(CHANGED),--changed $(CHANGED)) $(PATHS) $(ARGS)

# Tries every hole that was ever found, on an installation of its own, with Keystone, or at URL; ATTACKER and VICTIM
# are users of two projects in clouds.yaml.
attack: .venv/test.stamp $(if $(URL),,.venv/cloud/installed.stamp)
	cd tests && ../$(BIN)/python -W ignore -m attack $(URL) $(if $(ATTACKER),--cloud $(ATTACKER)) $(if $(VICTIM),--victim $(VICTIM)) $(if $(CASES),--cases $(CASES))

# What one runs while one works: less than a minute on two cores.
quick: .venv/test.stamp
	$(MAKE) --no-print-directory -j2 check quick-tests

# Each further process takes three seconds to collect the tests.
quick-tests: .venv/test.stamp
	$(BIN)/python -m pytest -q -n 3 --tier test tests/unit tests/simulation/test_schedules.py --seeds 3 $(ARCHITECTURE:%=--ignore %) $(PYTEST_ARGS)

check: lint mypy prose console
	$(QUIET) "Checking the architecture" $(BIN)/python -m pytest -q $(ARCHITECTURE)

lint: .venv/test.stamp
	$(QUIET) "Checking style" $(BIN)/ruff check .
	$(QUIET) "Checking format" $(BIN)/ruff format --check .

prose: .venv/test.stamp
	$(QUIET) "Checking prose" $(BIN)/python tools/prose.py

mypy: .venv/test.stamp
	mkdir -p .check && ln -sfn .. .check/stoker
	MYPYPATH=.check $(QUIET) "Checking types" $(BIN)/mypy -p stoker --exclude '/(tests|benchmarks|examples|doc|build)/'

# What checks it is in its folder, as the services of the cloud.
console: .venv/node/installed.stamp
	$(QUIET) "Checking the console's style" $(NODE)/eslint --cache --cache-strategy content --cache-location .check/console.eslint --config console/eslint.config.js console
	$(QUIET) "Checking the console's types" $(NODE)/tsc --project console --incremental --tsBuildInfoFile .check/console.tsbuildinfo

# Users who are not root cannot install packages: they are told once, before anything else is done, which are missing.
ASK = test $$(id -u) -eq 0 || { $(MAKE) --no-print-directory .venv/test.stamp && tools/install-test-deps $(1); }

# Side by side, for what installs waits for the network most of the time.
ready: .venv/bin/python
	$(call ASK,test)
	$(MAKE) --no-print-directory -j4 servers check .venv/compiled.stamp

prepared: .venv/bin/python
	$(call ASK,test full)
	$(MAKE) --no-print-directory -j4 test-deps check .venv/compiled.stamp .venv/ansible.stamp guests heat horizon

# All tests at first, once, instead of once in each of their processes; later only what changes is compiled, by each.
.venv/compiled.stamp: .venv/test.stamp
	$(QUIET) "Compiling the tests" $(BIN)/python -m pytest -q --collect-only
	touch $@

test-deps: all-servers cloud-databases

servers: .venv/test.stamp
	tools/install-test-deps test

# After those, for only one process at a time may install packages.
all-servers: servers
	tools/install-test-deps test full

images: servers
	tools/install-test-deps images

simulate: .venv/test.stamp
	$(BIN)/python -m pytest -q -n auto tests/simulation/test_cancel_anywhere.py --seeds $(SEEDS)
	cd tests && ../$(BIN)/python -W ignore -m simulation.campaign --seeds $(SEEDS) $(ARGS)

# All pages are read again (-E): those of the types are made from the code, whose changes Sphinx does not see.
docs: .venv/test.stamp
	$(BIN)/python -m sphinx -q -W --keep-going -E -b html doc doc/build
	echo doc/build/index.html

bench: .venv/test.stamp
	$(BIN)/python benchmarks/end_to_end.py

# Whether a resource, an idle second, a request or a process costs more than benchmarks/ratios.json says.
bench-check: .venv/test.stamp
	$(BIN)/python benchmarks/check.py

# Source archive, wheel, SBOM and checksums in dist/, of the version that the tag says.
dist: .venv/dist.stamp
	tools/dist $(BIN)/python .venv/dist '$(CURDIR)/dist'

# The image that Containerfile describes, of the packages; IMAGE_ARGS="--build-arg EXTRAS=mysql,redis" chooses other drivers.
image: dist
	$(QUIET) "Building the image localhost/stoker" podman build --format docker -t localhost/stoker $(IMAGE_ARGS) .

# The newest versions of all libraries; run the tests with them before they are committed.
constraints: .venv/bin/python
	$(QUIET) "Upgrading all libraries" $(BIN)/python -m pip install -q --upgrade --upgrade-strategy eager -e '.[test]'
	$(BIN)/python tools/constraints.py >.venv/constraints.txt && mv .venv/constraints.txt constraints.txt

clean:
	rm -rf .venv .check build dist share doc/build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Stoker needs Python 3.11 or later, this is " + sys.version.split()[0] + "; name another with PYTHON=…" if sys.version_info < (3, 11) else 0)'
	$(QUIET) "Making a Python environment in .venv" $(PYTHON) -m venv .venv || { rm -rf .venv; echo "Python's venv module is missing: apt-get install python3-venv" >&2; exit 1; }
	$(QUIET) "Upgrading its pip" $(BIN)/python -m pip install -q --upgrade pip  # that of Python 3.11 takes twice the processor's time

# What is imported is compiled then; most is never.
.venv/client.stamp: .venv/bin/python setup.cfg pyproject.toml constraints.txt
	$(QUIET) "Installing Stoker and the OpenStack client in .venv, once; it takes minutes" \
		$(BIN)/python -m pip install -q --no-compile -c constraints.txt -e '.[client]'
	touch $@

# Apart from the rest: the services want releases of libraries that Stoker need not have.  In its folder, for a copy of .venv may leave that out.
CLOUD := tests/harness/cloud/installed
.venv/cloud/installed.stamp: .venv/bin/python $(CLOUD)/requirements.txt $(CLOUD)/constraints.txt
	$(BIN)/python -m venv --without-pip .venv/cloud
	$(QUIET) "Installing the services of a cloud for the tests, once; it takes minutes" \
		$(BIN)/python -m pip --python .venv/cloud/bin/python install -q --no-compile -r $(CLOUD)/requirements.txt -c $(CLOUD)/constraints.txt
	touch $@

# Nothing where they are made already for these versions and this configuration.
cloud-databases: servers .venv/cloud/installed.stamp
	cd tests && ../$(QUIET) "Making the databases of that cloud, once; it takes minutes" ../$(BIN)/python -m harness.cloud --prepare

# The real Heat, whose stacks are moved, in its folder, as the services of the cloud.
heat: .venv/heat/installed.stamp

HEAT := tests/harness/heat/installed
.venv/heat/installed.stamp: .venv/bin/python $(HEAT)/requirements.txt $(HEAT)/constraints.txt $(CLOUD)/constraints.txt
	$(BIN)/python -m venv --without-pip .venv/heat
	$(QUIET) "Installing Heat for the tests, once; it takes minutes" \
		$(BIN)/python -m pip --python .venv/heat/bin/python install -q --no-compile -r $(HEAT)/requirements.txt -c $(CLOUD)/constraints.txt -c $(HEAT)/constraints.txt
	touch $@

# What tests Heat and its clients, in its folder, as the services of the cloud.
SUITES := tests/harness/suites
.venv/suites/installed.stamp: .venv/bin/python tools/install-suites $(SUITES)/requirements.txt $(SUITES)/constraints.txt $(HEAT)/requirements.txt
	$(QUIET) "Installing the test suites of Heat and its clients, once; it takes minutes" tools/install-suites
	touch $@

# The tools of `make dist`, apart from the rest: they are no part of what is tested.
.venv/dist.stamp: .venv/bin/python
	$(BIN)/python -m venv --without-pip .venv/dist
	$(QUIET) "Installing what builds packages, once" \
		$(BIN)/python -m pip --python .venv/dist/bin/python install -q --no-compile 'build>=1.2,<2' 'cyclonedx-bom>=7,<8' 'twine>=6.1'
	touch $@

.venv/ansible.stamp: .venv/bin/python tools/install-ansible
	$(QUIET) "Installing Ansible for the tests, once; it takes minutes" tools/install-ansible
	touch $@

.venv/node/installed.stamp: .venv/test.stamp console/package.json console/package-lock.json
	tools/install-test-deps check
	mkdir -p .venv/node && cp console/package.json console/package-lock.json .venv/node
	cd .venv/node && ../../$(QUIET) "Installing what checks the console, once" npm ci --no-audit --no-fund
	touch $@

# The agents of servers, in their folder, as the services of the cloud.
guests: .venv/guests/installed.stamp

.venv/guests/installed.stamp: .venv/bin/python tools/install-guests tests/harness/guests/requirements.txt
	$(QUIET) "Installing the agents of servers for the tests, once; it takes minutes" tools/install-guests
	touch $@

# The dashboard, in its folder, as the services of the cloud.
horizon: .venv/horizon/installed.stamp

HORIZON := tests/harness/horizon/installed
.venv/horizon/installed.stamp: .venv/bin/python tools/install-horizon $(HORIZON)/requirements.txt $(HORIZON)/constraints.txt $(HORIZON)/_1700_stoker.py $(HORIZON)/local/local_settings.py
	$(QUIET) "Installing Horizon for the tests, once; it takes minutes" tools/install-horizon
	touch $@

.venv/test.stamp: .venv/bin/python setup.cfg pyproject.toml constraints.txt
	$(QUIET) "Installing Stoker and what the tests need in .venv, once; it takes minutes" \
		$(BIN)/python -m pip install -q --no-compile -c constraints.txt -e '.[test]'
	touch $@
