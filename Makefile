# Makefile -- builds, installs and checks dyntrace. GNU make.
#
#   make                       build/dyntrace and, for `python3`, the extension in build/lib/
#   make PYTHONS="python3.11 python3.13"      an extension for each of these, side by side
#   make test                  lint, unit tests, then pytest
#   make install PREFIX=/usr/local DESTDIR=
#   make wheel PYTHONS="python3.11 python3.13"   for pip, one for each, in build/dist/
#   make help                  the other targets
#
# There are two halves, and which side of the process boundary a source lives
# on is seen from its folder. src/tracer_shim.c and src/tracer/ are loaded into
# the traced Python process: they become one extension per interpreter,
# build/lib/_dyntrace.SOABI.so, and know no SQLite; capture/src/ becomes another,
# _dyntrace_capture.SOABI.so. All other sources are the program build/dyntrace: it
# is linked to no Python. A new one needs no new line here.

# ---- what you may set ------------------------------------------------------

PYTHONS ?= python3
PREFIX  ?= /usr/local
DESTDIR ?=
CFLAGS  ?= -O2 -g
BUILD   ?= build
INSTALL ?= install

# Extra flags for everything: check-san and fuzz build a second tree with it.
SANITIZE ?=

FUZZ_SECONDS ?= 30
# For `make test`: what pytest is given, and who runs it.
PYTEST  ?= $(firstword $(PYTHONS)) -m pytest
TESTS   ?= tests capture/tests --ignore=tests/with_torch --ignore=capture/tests/with_torch --ignore=tests/remedies

# ---- hardening -------------------------------------------------------------

comma := ,
# $(call taken,FLAGS): those of FLAGS that the compiler and the linker know. All at once costs one compile; only where
# one is refused each is asked by itself. A sanitizer brings checks of its own, and _FORTIFY_SOURCE wants an optimizer.
takes = echo 'int main(void) { return 0; }' | $(CC) -Werror -O1 $(1) -x c -o /dev/null - 2>/dev/null
taken = $(if $(strip $(SANITIZE)),,$(shell $(call takes,$(1)) && echo '$(1)' || \
        for flag in $(1); do $(call takes,$$flag) && echo $$flag; done))

GUARDS := $(call taken,-fstack-protector-strong -fstack-clash-protection -fcf-protection=return)
GUARDS += $(if $(SANITIZE),,$(if $(filter -O%,$(filter-out -O0,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
# Files of the extension through which every call and lookup goes. A canary would cost them more than their own work
# does in places, and nothing of theirs is a buffer of bytes.
HOT    := tracer_shim tracer/evaluator/decide tracer/torch/observe tracer/guards/check tracer/guards/read tracer/guards/kinds
RELRO  := $(call taken,-Wl$(comma)-z$(comma)relro -Wl$(comma)-z$(comma)now)

# ---- the program -----------------------------------------------------------

# Functions that CPython, SQLite or a table calls have the parameters that it passes, used or not.
STANDARD := -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter $(GUARDS) $(SANITIZE)
# Where a reader of traces runs out of its memory is said in one place: src/lib/bounds.c.
WRAP     := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
LIBS     := $(WRAP) -lsqlite3 -ledit -lncursesw -lmd -lresolv -lpthread -lm
# Of a program for other machines: all but the C library inside, where there is an archive of it. bsd and md are what
# Debian's libedit needs.
inside    = $(foreach name,$(1),$(if $(filter /%,$(shell $(CC) -print-file-name=lib$(name).a)),-l$(name)))
BUNDLE    = $(WRAP) -Wl,-Bstatic $(call inside,sqlite3 edit ncursesw tinfo bsd md) -Wl,-Bdynamic -lsqlite3 -ledit -lncursesw -lmd -lresolv -lpthread -lm

TRACER  := src/tracer_shim.c $(sort $(shell find src/tracer -name "*.c"))
CAPTURE := $(sort $(wildcard capture/src/*.c))
# Of src/tracer/, what knows the bytecode of CPython's versions. Capture links copies of both: its extension
# and the shim's are not linked to each other.
STEPS   := tracer/compat/bytecode tracer/compat/step
# A library that runs in gdb, without sanitizers, and is embedded in the program.
PRELOAD := src/cmd/attach/gdb_ptrace.c
SOURCES := $(filter-out $(TRACER) $(PRELOAD),$(sort $(shell find src -name "*.c")))
OBJECTS := $(SOURCES:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/schema_sql.o $(BUILD)/obj/schema_empty.o $(BUILD)/obj/embedded.o $(BUILD)/obj/gdb_ptrace_so.o
SQL     := $(sort $(shell find schemas -name "*.sql" -o -name "*.txt" -o -type d))

all: program extensions

program: $(BUILD)/dyntrace $(BUILD)/dyntrace.1

$(BUILD)/dyntrace: $(BUILD)/obj/main.o $(BUILD)/libdyntrace.a
	$(CC) $(CFLAGS) $(STANDARD) $(RELRO) $(LDFLAGS) -pie -o $@ $^ $(LIBS)

$(BUILD)/bundle/dyntrace: $(BUILD)/obj/main.o $(BUILD)/libdyntrace.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(STANDARD) $(RELRO) $(LDFLAGS) -pie -s -o $@ $^ -Wl,--as-needed $(BUNDLE)

# The manual page: what the program itself says of its options is put in.
$(BUILD)/dyntrace.1: docs/man.awk docs/dyntrace.1.in $(BUILD)/dyntrace
	$(BUILD)/dyntrace help --options | awk -f docs/man.awk - docs/dyntrace.1.in > $@.new
	mv $@.new $@

# An archive, so that a unit test pulls in only what it calls. It is made anew,
# because ar would keep the object of a source that is gone.
$(BUILD)/libdyntrace.a: $(filter-out %/main.o,$(OBJECTS))
	rm -f $@
	ar rcs $@ $^

$(BUILD)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) -fPIE -MMD -MP -Isrc -c -o $@ $<

$(BUILD)/obj/schema_%.o: $(BUILD)/schema_%.c Makefile
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) -fPIE -MMD -MP -Isrc -c -o $@ $<

# Removing a file must also renew it, hence the directories.
$(BUILD)/schema_sql.c: schemas/embed.sh schemas/names.awk src/vocabulary.h $(SQL) python/dyntrace/_torch_kinds.py | $(BUILD)/obj
	sh schemas/embed.sh $(BUILD) > $@.new
	mv $@.new $@

# The machine that builds makes it: HOSTCC is for that machine.
HOSTCC ?= $(CC)
$(BUILD)/schema_empty.c: schemas/empty.c $(BUILD)/schema_sql.c
	$(HOSTCC) -Isrc -o $(BUILD)/empty $^ -lsqlite3
	rm -f $(BUILD)/empty.db
	$(BUILD)/empty $(BUILD)/empty.db > $@.new
	mv $@.new $@

$(BUILD)/obj/embedded.o: $(BUILD)/embedded.c Makefile
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) -fPIE -c -o $@ $<

$(BUILD)/embedded.c: src/cmd/embed.sh src/trace/remedies.txt $(wildcard src/cmd/report/page/* src/cmd/ask/*) | $(BUILD)/obj
	sh $^ > $@.new
	mv $@.new $@

$(BUILD)/gdb_ptrace.so: $(PRELOAD) Makefile | $(BUILD)/obj
	$(CC) $(CPPFLAGS) $(CFLAGS) $(filter-out $(SANITIZE),$(STANDARD)) -fPIC -shared -s -o $@ $<

$(BUILD)/gdb_ptrace_so.c: $(BUILD)/gdb_ptrace.so
	{ echo 'const unsigned char gdb_ptrace_so[] = {'; od -An -v -tu1 $< | sed 's/ *\([0-9][0-9]*\)/\1,/g'; \
	  echo '};'; echo 'const unsigned gdb_ptrace_so_bytes = sizeof gdb_ptrace_so;'; } > $@.new
	mv $@.new $@

$(BUILD)/obj/gdb_ptrace_so.o: $(BUILD)/gdb_ptrace_so.c Makefile
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) -fPIE -c -o $@ $<

$(BUILD)/obj $(BUILD)/unit $(BUILD)/fuzz:
	mkdir -p $@

$(BUILD)/lib/inject/__pycache__:
	$(INSTALL) -d -m 755 $(FOLDERS:%=$(BUILD)/lib/%)

# ---- the extension, once per interpreter -----------------------------------

EXTENSIONS :=
BYTECODE :=
SEEN :=
UNFIT :=
PACKAGE := $(wildcard python/dyntrace/*.py python/dyntrace/*.pyi) python/dyntrace/py.typed
# Modules of the same package.
CAPTURING := $(wildcard capture/python/*.py capture/python/*.pyi)
# Each has a folder of its own: whoever puts the package's on PYTHONPATH must not get our sitecustomize, and an
# interpreter that is led to that one finds nothing else. Python would make their __pycache__ with the mode that the
# umask of a recorded program leaves; they are there before, and only their owner may write to them.
MODULE := $(BUILD)/lib/inject/sitecustomize.py $(PACKAGE:%=$(BUILD)/lib/%) $(CAPTURING:capture/python/%=$(BUILD)/lib/python/dyntrace/%)
FOLDERS := inject inject/__pycache__ python python/dyntrace python/dyntrace/__pycache__

# $(call facts,PYTHON): "ok SOABI SUFFIX -isystem ...", or a sentence that says
# why nothing can be built for it. See python/build_facts.py.
facts = $(or $(shell $(1) python/build_facts.py $(1) 2>/dev/null),$(1): cannot be run: is it on PATH?)

# Of an interpreter with that SOABI, what each start of a recorded program would else compile anew, where Python may not write
# or is told not to. With a hash of the source in it, which is looked at: another sitecustomize.py is never mistaken for this.
bytecode = $(BUILD)/lib/inject/__pycache__/sitecustomize.$(word 1,$(subst -, ,$(1)))-$(patsubst %t,%,$(word 2,$(subst -, ,$(1)))).pyc
# Of a free-threaded one (SOABI cpython-314t-...), which has the same bytecode as that with the GIL, and no capture.
threaded = $(filter %t,$(word 2,$(subst -, ,$(1))))

# The rules for one interpreter: 1 SOABI, 2 suffix, 3 include flags, 4 its name.
define extension_rules
ifeq ($(filter $(call bytecode,$(1)),$(BYTECODE)),)
BYTECODE += $(call bytecode,$(1))
$(call bytecode,$(1)): $(BUILD)/lib/inject/sitecustomize.py
	$(4) -c 'import py_compile as p; p.compile("$$<", "$$@", doraise=True, invalidation_mode=p.PycInvalidationMode.CHECKED_HASH)'
endif
EXTENSIONS += $(BUILD)/lib/_dyntrace$(2)
$(BUILD)/lib/_dyntrace$(2): $(TRACER:src/%.c=$(BUILD)/obj-$(1)/%.o) | $(BUILD)/lib/inject/__pycache__
	$(CC) $(CFLAGS) $(STANDARD) $(RELRO) $(LDFLAGS) -shared -fPIC -o $$@ $$^ -lpthread
ifneq ($(if $(call threaded,$(1)),,$(CAPTURE)),)
EXTENSIONS += $(BUILD)/lib/_dyntrace_capture$(2)
endif
$(BUILD)/lib/_dyntrace_capture$(2): $(CAPTURE:capture/src/%.c=$(BUILD)/obj-$(1)/capture/%.o) $(STEPS:%=$(BUILD)/obj-$(1)/%.o) | $(BUILD)/lib/inject/__pycache__
	$(CC) $(CFLAGS) $(STANDARD) $(RELRO) $(LDFLAGS) -shared -fPIC -o $$@ $$^
$(BUILD)/obj-$(1)/%.o: src/%.c Makefile
	@mkdir -p $$(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) $$(if $(GUARDS),$$(if $$(filter $(HOT),$$*),-fno-stack-protector)) -fPIC -fvisibility=hidden -MD -MP -Isrc $(3) -c -o $$@ $$<
$(BUILD)/obj-$(1)/capture/%.o: capture/src/%.c Makefile
	@mkdir -p $$(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) -fPIC -fvisibility=hidden -MD -MP -Isrc $(3) -c -o $$@ $$<
-include $(TRACER:src/%.c=$(BUILD)/obj-$(1)/%.d) $(CAPTURE:capture/src/%.c=$(BUILD)/obj-$(1)/capture/%.d)
endef

# Two names may be the same interpreter ("python3 python3.11"): first one wins.
define interpreter
FACTS := $(call facts,$(1))
ifneq ($$(firstword $$(FACTS)),ok)
UNFIT += $$(FACTS);
else ifeq ($$(filter $$(word 2,$$(FACTS)),$$(SEEN)),)
SEEN += $$(word 2,$$(FACTS))
$$(eval $$(call extension_rules,$$(word 2,$$(FACTS)),$$(word 3,$$(FACTS)),$$(wordlist 4,99,$$(FACTS)),$(1)))
endif
endef

ifneq ($(filter-out clean help program sdist uninstall wheel-test deb-test,$(or $(MAKECMDGOALS),all)),)
$(foreach python,$(PYTHONS),$(eval $(call interpreter,$(python))))
endif

$(BUILD)/bundle/_dyntrace%: $(BUILD)/lib/_dyntrace%
	@mkdir -p $(@D)
	strip -o $@ $<

extensions: fit $(EXTENSIONS) $(MODULE) $(BYTECODE)

fit:
	@if [ -n "$(UNFIT)" ]; then echo "$(UNFIT)" | tr ';' '\n' | sed -n 's/^ *\(..*\)/make: &/p' >&2; exit 1; fi

$(BUILD)/lib/inject/sitecustomize.py: python/sitecustomize.py | $(BUILD)/lib/inject/__pycache__
	$(INSTALL) -m 644 $< $@

# A link of `pip install -e .` leads to the source itself.
$(BUILD)/lib/python/dyntrace/%: python/dyntrace/% | $(BUILD)/lib/inject/__pycache__
	@rm -f $@
	$(INSTALL) -m 644 $< $@

$(BUILD)/lib/python/dyntrace/%: capture/python/% | $(BUILD)/lib/inject/__pycache__
	@rm -f $@
	$(INSTALL) -m 644 $< $@

# ---- install ---------------------------------------------------------------

BINDIR := $(DESTDIR)$(PREFIX)/bin
LIBDIR := $(DESTDIR)$(PREFIX)/lib/dyntrace
MANDIR := $(DESTDIR)$(PREFIX)/share/man/man1
DOCDIR := $(DESTDIR)$(PREFIX)/share/doc/dyntrace
BASHDIR := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

install: all
	$(INSTALL) -d $(BINDIR) $(LIBDIR) $(FOLDERS:%=$(LIBDIR)/%) $(MANDIR) $(DOCDIR)/docs $(DOCDIR)/capture $(DOCDIR)/examples $(DOCDIR)/schemas/queries $(BASHDIR) $(ZSHDIR) $(FISHDIR)
	$(INSTALL) -m 755 $(BUILD)/dyntrace $(BINDIR)/dyntrace
	$(INSTALL) -m 755 $(BUILD)/lib/_dyntrace*.so $(LIBDIR)
	$(INSTALL) -m 644 python/sitecustomize.py $(LIBDIR)/inject
	$(INSTALL) -m 644 $(BYTECODE) $(LIBDIR)/inject/__pycache__
	$(INSTALL) -m 644 $(PACKAGE) $(CAPTURING) $(LIBDIR)/python/dyntrace
	$(INSTALL) -m 644 $(BUILD)/dyntrace.1 $(MANDIR)/dyntrace.1
	$(INSTALL) -m 644 completions/dyntrace.bash $(BASHDIR)/dyntrace
	$(INSTALL) -m 644 completions/_dyntrace $(ZSHDIR)/_dyntrace
	$(INSTALL) -m 644 completions/dyntrace.fish $(FISHDIR)/dyntrace.fish
	$(INSTALL) -m 644 README.md SECURITY.md LICENSE $(DOCDIR)
	$(INSTALL) -m 644 $(wildcard docs/*.md) $(DOCDIR)/docs
	$(INSTALL) -m 644 capture/README.md $(DOCDIR)/capture
	$(INSTALL) -m 644 $(wildcard examples/*.py examples/*.ipynb) $(DOCDIR)/examples
	$(INSTALL) -m 644 $(BUILD)/schemas/trace.sql $(BUILD)/schemas/views.sql $(DOCDIR)/schemas
	$(INSTALL) -m 644 $(patsubst %,$(BUILD)/%,$(wildcard schemas/queries/*.sql)) $(DOCDIR)/schemas/queries

# What packaging/backend.py puts into a wheel.
bundle: fit $(BUILD)/bundle/dyntrace $(EXTENSIONS:$(BUILD)/lib/%=$(BUILD)/bundle/%) $(BUILD)/dyntrace.1

# A wheel for each interpreter, that runs elsewhere, and the source distribution.
wheel: fit
	+@set -e; for python in $(PYTHONS); do $$python packaging/backend.py wheel $(BUILD)/dist; done

sdist:
	@$(firstword $(PYTHONS)) packaging/backend.py sdist $(BUILD)/dist

uninstall:
	rm -f $(BINDIR)/dyntrace $(MANDIR)/dyntrace.1 $(COMPLETIONDIR)/dyntrace
	rm -rf $(LIBDIR) $(DOCDIR)

# ---- tests -----------------------------------------------------------------

UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# $(VALGRIND) may stand before every unit test.
test: all lint unit
	$(MAKE) pytest

pytest: all
	DYNTRACE="$(abspath $(BUILD))/dyntrace" $(PYTEST) $(TESTS)

unit: unit-build
	@set -e; for test in $(sort $(UNIT)); do echo "$$test"; $(VALGRIND) $$test; done

unit-build: $(UNIT)

# What the tree of src/ and capture/src/ promises: which folder may include which, formatting, numbers that only go down, where versions
# are named. Call cycles are read from the object files, of the program and of the first extension.
CLANG_FORMAT ?= clang-format
LINKED = --objects $(BUILD)/obj $(addprefix --objects $(BUILD)/obj-,$(firstword $(SEEN)))
lint: all
	CLANG_FORMAT="$(CLANG_FORMAT)" python3 tests/lint.py $(LINKED)

format:
	@$(CLANG_FORMAT) -i $(shell find src capture/src -name "*.[ch]")

ratchet: all
	python3 tests/ratchet.py --renew $(LINKED)

# A service under `run --keep` for half an hour (docs/long.md).
SOAK_SECONDS = 1800
KEEP = 100M
RATE = 40000
soak: all
	nice -n 5 python3 tests/soak.py --dyntrace $(BUILD)/dyntrace --python $(firstword $(PYTHONS)) --seconds $(SOAK_SECONDS) \
		--keep $(KEEP) --rate $(RATE) --out $(BUILD)/soak

# The same in a tree of its own, whose clock passes a week meanwhile.
WEEK = 604800
soak-week:
	$(MAKE) BUILD=build/week-$(SOAK_SECONDS) CPPFLAGS="$(CPPFLAGS) -DCLOCK_TIMES=$$(($(WEEK) / $(SOAK_SECONDS)))" all
	nice -n 5 python3 tests/soak.py --week --dyntrace build/week-$(SOAK_SECONDS)/dyntrace --python $(firstword $(PYTHONS)) \
		--seconds $(SOAK_SECONDS) --keep $(KEEP) --rate $(RATE) --out build/week-$(SOAK_SECONDS)/soak

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libdyntrace.a | $(BUILD)/unit
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) -MMD -MP -Isrc -o $@ $< $(BUILD)/libdyntrace.a $(LIBS)

# A second tree under build/san: the program and the unit tests under ASan and
# UBSan, the extension too, which then needs the runtime loaded before Python.
# Python itself leaks by design, so leaks are looked for in the C programs only.
SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
check-san:
	$(MAKE) BUILD=build/san SANITIZE="$(SAN_FLAGS)" CFLAGS="-O1 -g" all unit
	BUILD=build/san TESTS="$(TESTS)" sh tests/run_san.sh $(PYTEST)

check-valgrind: all unit-build
	$(MAKE) unit VALGRIND="valgrind -q --error-exitcode=99 --leak-check=full"
	BUILD=$(BUILD) sh tests/run_valgrind.sh

# Each tests/fuzz/fuzz_X.c is one page: what to do with some bytes. The driver
# mutates tests/fuzz/corpus/X/* and what is made in build/fuzz/corpus/X, keeps
# what reaches new code (the tree under build/fuzz is compiled to tell it), and
# stops after FUZZ_SECONDS a program.
COVERAGE := -fsanitize-coverage=trace-pc
fuzz:
	$(MAKE) BUILD=build/fuzz SANITIZE="$(SAN_FLAGS) $(COVERAGE)" CFLAGS="-O1 -g" fuzz-build
	@mkdir -p build/fuzz/corpus
	@python3 tests/planted.py build/fuzz/corpus/import
	@set -e; for name in $(notdir $(FUZZ)); do \
	    seeds=$$(ls -d tests/fuzz/corpus/$${name#fuzz_} build/fuzz/corpus/$${name#fuzz_} 2>/dev/null) || :; \
	    FUZZ_SECONDS=$(FUZZ_SECONDS) build/fuzz/fuzz/$$name $$seeds; done

fuzz-build: $(FUZZ)

$(BUILD)/fuzz/%: tests/fuzz/%.c $(BUILD)/obj/fuzz_driver.o $(BUILD)/libdyntrace.a | $(BUILD)/fuzz
	$(CC) $(CPPFLAGS) $(CFLAGS) $(STANDARD) -MMD -MP -Isrc -o $@ $< $(BUILD)/obj/fuzz_driver.o $(BUILD)/libdyntrace.a $(LIBS)

# Random keys in the TUI, which is built with ASan and UBSan for that.
tui-fuzz:
	$(MAKE) BUILD=build/san SANITIZE="$(SAN_FLAGS)" CFLAGS="-O1 -g" program
	python3 tests/fuzz/tui_keys.py build/san/dyntrace $(FUZZ_SECONDS)

# Random hostile programs for the evaluator, with every Python: as it is, and with ASan and UBSan in the extension.
evaluator-fuzz: all
	$(MAKE) BUILD=build/san SANITIZE="$(SAN_FLAGS)" CFLAGS="-O1 -g" all
	$(firstword $(PYTHONS)) tests/fuzz/evaluator.py $(PYTHONS:%=--python %) --build $(BUILD) --build build/san --seconds $(FUZZ_SECONDS)

# Random programs whose threads run in parallel: PYTHONS are free-threaded ones.
threads-fuzz: all
	python3 tests/fuzz/threads.py --dyntrace $(BUILD)/dyntrace $(PYTHONS:%=--python %) --seconds $(FUZZ_SECONDS)

# Random hostile functions under dyntrace.compile and dyntrace.resume: no process crashes.
capture-fuzz: all
	$(MAKE) BUILD=build/san SANITIZE="$(SAN_FLAGS)" CFLAGS="-O1 -g" all
	$(firstword $(PYTHONS)) capture/tests/fuzz_captured.py $(PYTHONS:%=--python %) --build $(BUILD) --build build/san --seconds $(FUZZ_SECONDS)

# Random programs under random settings: what --what-if predicts beside what then happens.
PAIRS ?= 400
whatif-pairs: all
	$(firstword $(PYTHONS)) tests/fuzz/whatif_pairs.py --dyntrace $(BUILD)/dyntrace --pairs $(PAIRS) $(SEEDS)

# The same of torch programs: 18 programs under 10 settings for each of SEEDS, in each of MODES.
MODES = shim observe
whatif-torch-pairs:
	$(MAKE) PYTHONS="$(TORCH_PYTHON)" all
	OMP_NUM_THREADS=1; export OMP_NUM_THREADS; status=0; for mode in $(MODES); do echo "$$mode:"; \
	    $(TORCH_PYTHON) tests/fuzz/whatif_torch.py --dyntrace $(BUILD)/dyntrace --python $(TORCH_PYTHON) --mode $$mode $(SEEDS) || status=1; \
	done; exit $$status

# Every key in every view of the TUI, with ASan and UBSan in it, then under valgrind.
tui-tour: program
	$(MAKE) BUILD=build/san SANITIZE="$(SAN_FLAGS)" CFLAGS="-O1 -g" program
	DYNTRACE_TOUR=1 DYNTRACE="$(abspath build/san)/dyntrace" $(PYTEST) tests/test_tui_tour.py
	DYNTRACE_TOUR=1 DYNTRACE="$(abspath tests)/under_valgrind.sh" DYNTRACE_CHECKED="$(abspath $(BUILD))/dyntrace" $(PYTEST) tests/test_tui_tour.py

# The driver must not be told about itself.
$(BUILD)/obj/fuzz_driver.o: tests/fuzz/driver.c | $(BUILD)/obj
	$(CC) $(CPPFLAGS) $(CFLAGS) $(filter-out $(COVERAGE),$(STANDARD)) -c -o $@ $<

# BENCH and COMPARE are more options for the two, such as --quick.
bench: all
	$(firstword $(PYTHONS)) bench/bench.py $(PYTHONS:%=--python %) $(BENCH)

# What is exported to engines, asked by them: they are fetched into build/engines.
engines: all
	$(firstword $(PYTHONS)) -m venv $(BUILD)/engines
	$(BUILD)/engines/bin/pip install -q pyarrow duckdb duckdb-ext-sqlite chdb pyspark datasette pytest
	DYNTRACE="$(abspath $(BUILD))/dyntrace" DYNTRACE_PYTHONS="$(firstword $(PYTHONS))" $(BUILD)/engines/bin/python -m pytest -rs tests/test_engines.py

cpython-tests: all
	$(firstword $(PYTHONS)) tests/cpython/compare.py $(PYTHONS:%=--python %) $(COMPARE)

# dyntrace.compile judged: functions by language feature and random ones beside themselves uncompiled, with numpy, and with torch
# where TORCH_PYTHON is one; CPython's tests under `run --capture`, and with all of their functions captured; graphs beside
# torch.compile's, JUDGES=quick: without CPython's and torch.compile. RANDOM: how many functions; WATCHED=--all: all of those modules.
RANDOM ?= 2000
JUDGED = $(1) capture/tests/corpus.py --library $(2); $(1) capture/tests/random_functions.py --library $(2) --count $(RANDOM); \
    if $(1) -c 'import hypothesis'; then $(1) capture/tests/random_functions.py --library $(2) --hypothesis --count $(RANDOM); fi
capture-judges: all
	@set -ex; export PYTHONPATH="$(abspath $(BUILD))/lib/python"; \
	    for python in $(PYTHONS); do if $$python -c 'import numpy'; then $(call JUDGED,$$python,numpy); \
	        $$python capture/tests/lifetimes.py 0 $(RANDOM); $$python capture/tests/corpus.py --compile every; $$python capture/tests/random_functions.py --plain --count $(RANDOM); fi; done
ifneq ($(JUDGES),quick)
	$(firstword $(PYTHONS)) tests/cpython/compare.py $(PYTHONS:%=--python %) --quick --dyntrace-option=--capture $(COMPARE)
	$(firstword $(PYTHONS)) capture/tests/watched.py $(PYTHONS:%=--python %) --build $(BUILD) $(WATCHED)
endif
	@if ! $(TORCH_PYTHON) -c 'import torch' 2>/dev/null; then echo "$(TORCH_PYTHON) has no torch: with numpy only"; else set -ex; \
	    export PYTHONPATH="$(abspath $(BUILD))/lib/python"; $(call JUDGED,$(TORCH_PYTHON),torch); \
	    [ "$(JUDGES)" = quick ] || $(TORCH_PYTHON) capture/tests/beside_torch.py --dyntrace $(BUILD)/dyntrace; fi

# torch.compile programs with and without us; TORCH_PYTHON has torch and pytest.
TORCH_PYTHON ?= $(or $(DYNTRACE_TORCH_PYTHON),$(firstword $(PYTHONS)))
torch-tests:
	$(MAKE) PYTHONS="$(TORCH_PYTHON)" all
	DYNTRACE="$(abspath $(BUILD))/dyntrace" DYNTRACE_TORCH_PYTHON="$(TORCH_PYTHON)" \
	    $(TORCH_PYTHON) -m pytest $(or $(TORCH_TESTS),tests/with_torch capture/tests/with_torch tests/remedies)

# What dyntrace counts, advises and promises of the programs in tests/remedies, beside what torch does: a table, and status 1
# where something is wrong. tests/remedies/test_remedies_practice.py asserts the same.
remedies:
	$(MAKE) PYTHONS="$(TORCH_PYTHON)" all
	$(TORCH_PYTHON) tests/remedies/table.py --dyntrace $(BUILD)/dyntrace --python $(TORCH_PYTHON) $(REMEDIES)

# Attach to running programs and detach, CYCLES times each; PYTHON has what the PROGRAMS need (tests/attach_cycles.py).
CYCLES = 200
attach-cycles: all
	DYNTRACE=$(BUILD)/dyntrace $(firstword $(PYTHONS)) tests/attach_cycles.py --cycles $(CYCLES) --python $(firstword $(PYTHONS)) $(PROGRAMS)

# The same with every pair of torch and CPython that is said to work, each torch fetched; PAIRS names some of them, and
# MATRIX has more options, such as --keep. What came of it stays in build/torch-matrix, and in the table of docs/torch.md
# with MATRIX="--docs docs/torch.md".
torch-matrix:
	$(firstword $(PYTHONS)) tests/matrix/matrix.py $(PYTHONS:%=--python %) $(MATRIX) $(PAIRS)

# What the torch VERSION has changed beside the newest tested one, what dyntrace does not know of it, and the quick tests
# with it: docs/next-torch.md. NEXT has more options, such as --before 2.14.1 and --no-tests.
torch-next:
	$(firstword $(PYTHONS)) tests/matrix/next.py --python $(firstword $(PYTHONS)) $(NEXT) $(VERSION)

# PyTorch's own tests of its Dynamo, on torch's evaluator and on ours. TORCH_PYTHON has the torch, PYTORCH_SRC the
# tests; FILES names some of them or says all; CONFORMANCE has more options, such as --torch observe.
conformance:
	$(MAKE) PYTHONS="$(TORCH_PYTHON)" all
	$(firstword $(PYTHONS)) tests/conformance/compare.py --source "$(PYTORCH_SRC)" --python "$(TORCH_PYTHON)" \
	    --dyntrace $(BUILD)/dyntrace --baseline-dir $(BUILD)/conformance \
	    $(if $(ANY_VERSION),--any-version) $(if $(FILES),--files $(FILES)) $(CONFORMANCE)

# Wheels and source distribution for every one of PYTHONS as they are released: slower than tests/test_wheel.py as it is.
wheel-test:
	DYNTRACE_WHEELS=all DYNTRACE_PYTHONS="$(subst $() $(),:,$(foreach python,$(PYTHONS),$(shell $(python) -c 'import sys; print(sys.executable)')))" \
	    DYNTRACE="$(abspath $(BUILD))/dyntrace" $(PYTEST) tests/test_wheel.py

# Debian's packages, as root: made, installed and used in chroots under build/.
deb-test:
	sh tests/run_deb.sh

# CPython's test modules with every frame of the test files replaced by a copy.
shim-torture: all
	SHIM_TORTURE=1 DYNTRACE="$(abspath $(BUILD))/dyntrace" $(PYTEST) tests/test_shim_torture.py

# Functions split in two, at random points and at every point: CPython's test modules, suites from PyPI, random programs.
# RESUME has more options, such as --quick or --seeds 1 2 3 every; PACKAGES names the suites.
PACKAGES ?= toolz attrs boltons cachetools idna
resume-torture: all
	$(firstword $(PYTHONS)) tests/cpython/resume.py $(PYTHONS:%=--python %) --build $(BUILD) --packages $(PACKAGES) --random 20000 $(RESUME)

clean:
	rm -rf $(BUILD)

help:
	@echo "make                 build/dyntrace, and build/lib/ for each of PYTHONS (now: $(PYTHONS))"
	@echo "make program         only build/dyntrace, no Python needed"
	@echo "make test            lint, unit tests, then pytest; TESTS=tests/test_x.py for a part"
	@echo "make unit            unit tests alone"
	@echo "make lint            what the tree promises: includes run downwards, code is formatted, tests/ratchet.txt is held"
	@echo "make format          lay out src/ and capture/src/ as .clang-format has it, with clang-format 14"
	@echo "make ratchet         lower the numbers of tests/ratchet.txt to today's"
	@echo "make wheel           build/dist/: a wheel for each of PYTHONS, for other machines, too; make sdist: the sources"
	@echo "make wheel-test      wheels and sdist of every one of PYTHONS, installed and used"
	@echo "make deb-test        Debian's packages: made in a trixie chroot, installed, used and purged in another; as root"
	@echo "make check-san       the same under ASan and UBSan"
	@echo "make check-valgrind  unit tests and a recording under valgrind"
	@echo "make fuzz            each tests/fuzz/fuzz_*.c for FUZZ_SECONDS (now: $(FUZZ_SECONDS))"
	@echo "make tui-fuzz        random keys in the TUI under ASan, for FUZZ_SECONDS"
	@echo "make whatif-pairs    what --what-if predicts of PAIRS random programs, or of SEEDS, beside what then happens"
	@echo "make whatif-torch-pairs TORCH_PYTHON=PY SEEDS=...  the same of torch programs, 180 pairs a seed"
	@echo "make threads-fuzz   random programs whose threads run in parallel, for free-threaded PYTHONS, for FUZZ_SECONDS"
	@echo "make evaluator-fuzz  random hostile programs for the evaluator, as it is and under ASan, for FUZZ_SECONDS"
	@echo "make capture-fuzz    random hostile functions captured and split, as it is and under ASan, for FUZZ_SECONDS each"
	@echo "make tui-tour        every key in every view of the TUI, under ASan and UBSan, then under valgrind"
	@echo "make capture-judges  dyntrace.compile on its corpus, random functions and CPython's tests, beside torch.compile; RANDOM=2000"
	@echo "make cpython-tests   CPython's own tests with and without dyntrace; COMPARE=--quick takes minutes"
	@echo "make torch-tests     torch.compile programs, with and without dyntrace; TORCH_PYTHON=PY has torch"
	@echo "make attach-cycles   attach to running programs and detach, 200 times each"
	@echo "make remedies        what is counted and advised of torch programs as people write them, beside torch's counts"
	@echo "make torch-matrix    the same for each torch and CPython, fetched; PAIRS=\"2.8.0-3.12 2.11.0-3.12\" for a part"
	@echo "make torch-next      what a torch that is not tested yet has changed, and the quick tests with it; VERSION=2.16.0"
	@echo "make conformance     PyTorch's test/dynamo with and without dyntrace; PYTORCH_SRC=/path [TORCH_PYTHON=] [FILES=]"
	@echo "make shim-torture    the same with every frame replaced by the shim"
	@echo "make resume-torture  CPython's tests, suites from PyPI and random programs with their functions split in two; RESUME=--quick"
	@echo "make bench           the tables of docs/costs.md; wants a quiet machine; BENCH=--quick"
	@echo "make engines         DuckDB, ClickHouse, Spark and Datasette, fetched, on traces of a job"
	@echo "make soak            a service under run --keep for half an hour; SOAK_SECONDS=, KEEP=, RATE="
	@echo "make soak-week       the same, while the clock of the recording passes a week"
	@echo "make install         PREFIX (now: $(PREFIX)) and DESTDIR; make uninstall undoes it"
	@echo "make clean           remove $(BUILD)/"

.PHONY: all program extensions fit bundle wheel sdist install uninstall test pytest unit unit-build lint format ratchet wheel-test deb-test check-san check-valgrind \
        fuzz fuzz-build tui-fuzz threads-fuzz evaluator-fuzz capture-fuzz whatif-pairs whatif-torch-pairs tui-tour bench soak soak-week engines cpython-tests capture-judges torch-tests remedies attach-cycles torch-matrix torch-next conformance shim-torture resume-torture clean help
.DELETE_ON_ERROR:
.SECONDARY:

-include $(OBJECTS:.o=.d) $(UNIT:=.d) $(FUZZ:=.d)
