# The commands of the project. `make` alone explains them; the work is in scripts/.

TIERCE := target/release/tierce

.PHONY: help demo check test bench hartstone-board build manual install deb test-deb test-install static test-arm docs setup lint tidy format

help:
	@printf '%s\n' \
	'Tierce: hierarchical real-time CPU scheduling from one plan file.' \
	'' \
	'  make demo    see it: a plan simulated, then enforced on real programs in a throw-away machine' \
	'  make check   before a commit: formats, warnings and the tests that need no virtual machine' \
	'  make test    every test, from a bare machine; ends with "N passed, M failed"' \
	'  make bench   measure: simulator speed, cost per switch in the kernel, a recorded run replayed' \
	'  make hartstone-board   Hartstone under five schedulers on the emulated board, five minutes' \
	'' \
	'  make build   $(TIERCE), then try: $(TIERCE) check examples/desktop.toml' \
	'  make manual  man pages and completions, target/manual;  make install PREFIX=/usr/local DESTDIR=: installs both' \
	'  make deb     Debian packages, target/deb;  make test-deb: installed, used, removed and purged in a clean machine (root)' \
	'  make test-install   cargo install, pip install and the wheel, each used where it was installed' \
	'  make static  programs that need no library, for x86-64 and arm64, target/static;  make test-arm: the simulator and a kernel there, emulated' \
	'  make docs    the pages as a site with search, target/docs/index.html' \
	'  make setup   install what all of the above need (they call it themselves)' \
	'  make lint    formats and warnings;  make tidy: pages and sources agree;  make format: apply the formats' \
	'' \
	'README.md: what it is.  ARCHITECTURE.md: how it works.  HACKING.md: how to change it.'

demo:
	@scripts/demo

check:
	@scripts/check

test:
	@scripts/test

bench:
	@scripts/bench

hartstone-board:
	@scripts/setup test
	@scripts/hartstone-board

build:
	@scripts/build

manual:
	@cargo run --release --quiet --package tierce-manual -- target/manual

install:
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) LIBDIR=$(LIBDIR) scripts/install

deb:
	@scripts/deb

test-deb:
	@scripts/deb-test

test-install:
	@scripts/install-test

static:
	@scripts/static

test-arm:
	@scripts/arm64

docs:
	@scripts/docs

setup:
	@scripts/setup build test demo bench docs

lint:
	@scripts/setup build test
	@scripts/lint

tidy:
	@scripts/tidy

format:
	@scripts/setup build test
	@cargo fmt
	@scripts/lint c-files | xargs -0 clang-format-19 -i
