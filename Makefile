# Ditron's build. `make help` lists the targets; modes are variables:
#   BUILD=DIR      where everything goes (default build); the fetched grammar always lies in build/deps
#   DEBUG=1        no optimisation, assertions on
#   SAN=LIST       sanitizers, e.g. address,undefined or thread
#   STATIC=1       LLVM linked in and hidden, instead of its shared library (`make install` does so by itself)
#   PREFIX, DESTDIR  for install
#   V=1            show whole commands
# Each mode has a folder of its own below BUILD, so that switching never rebuilds; STATIC shares the objects.

BUILD   ?= build
PREFIX  ?= /usr/local
VERSION := 0.1.0
ifeq ($(origin CC),default)
CC := $(if $(shell command -v ccache),ccache )gcc
endif

comma := ,
.DEFAULT_GOAL := all
say    = @$(if $(V),,echo "  $(1) $@" &&)
MODE := $(BUILD)$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))$(if $(DEBUG),/debug)
B    := $(MODE)$(if $(STATIC),/static)
DEPS := build/deps
GRAMMAR := $(DEPS)/tree-sitter-python/src

# The first build sets up by itself: make remakes what it includes, then reads everything anew.
ifneq ($(filter-out clean help setup format format-check lint-layers,$(or $(MAKECMDGOALS),all)),)
-include $(DEPS)/ready.mk
endif
$(DEPS)/ready.mk: scripts/setup
	@scripts/setup

# ---- flags --------------------------------------------------------------------------------------
CFLAGS  ?= -g $(if $(DEBUG),-O0,-O2)
WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(if $(DEBUG),-DDT_DEBUG=1) $(SANFLAGS) \
  -fPIC -fvisibility=hidden -pthread -ffile-prefix-map=$(CURDIR)=. -Isrc -Iinclude
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=all))
LDFLAGS ?=
BASE_LIBS := -pthread -ldl -lm

# ---- sources ------------------------------------------------------------------------------------
# A room appears in the build when its folder holds sources.
room      = $(wildcard $(foreach r,$(1),src/$(r)/*.c))
BOTH_SRC := $(call room,base image)                       # no state: in both shared libraries
RT_SRC   := $(BOTH_SRC) $(call room,rt ops) $(wildcard src/api/rt_*.c)
FULL_SRC := $(call room,front ir pass graph target target/x86 target/nvptx target/amdgpu) \
            $(wildcard src/api/compile_*.c)
CLI_SRC  := $(call room,cli)
UNIT_SRC := $(wildcard tests/unit/*.c)
HARNESS_SRC := $(wildcard tests/harness/*.c)
obj       = $(patsubst %.c,$(MODE)/obj/%.o,$(1))

LLVM_SRC := $(filter src/target/%,$(FULL_SRC))
ifneq ($(LLVM_SRC),)
LLVM_CONFIG ?= llvm-config-22
LLVM_CFLAGS := -isystem $(shell $(LLVM_CONFIG) --includedir 2>/dev/null)
LLVM_PARTS  := passes bitreader bitwriter $(foreach t,x86 nvptx amdgpu,$(if $(wildcard src/target/$(t)/*.c),$(t)))
LLVM_STATIC  = $(shell $(LLVM_CONFIG) --link-static --libs $(LLVM_PARTS)) \
  $(patsubst -lz%,-l:libz%.a,$(filter-out %z3.so -lxml2,$(shell $(LLVM_CONFIG) --link-static --system-libs $(LLVM_PARTS)))) \
  -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -static-libgcc
LLVM_LIBS   := -L$(shell $(LLVM_CONFIG) --libdir 2>/dev/null) $(if $(STATIC),$(LLVM_STATIC),-lLLVM-22)
endif
ifneq ($(call room,front),)
GRAMMAR_OBJ := $(DEPS)/obj/parser.o $(DEPS)/obj/scanner.o
PARSE_LIBS  := $(if $(STATIC),-l:libtree-sitter.a,-ltree-sitter)
endif
# lld links in a tenth of the time
LLD        := $(if $(wildcard $(DEPS)/bin/ld.lld),-B$(DEPS)/bin -fuse-ld=lld)
STATIC_LD  := $(if $(STATIC),-Wl$(comma)--gc-sections -Wl$(comma)--icf=all)
FULL_LIBS  = $(PARSE_LIBS) $(LLVM_LIBS) $(BASE_LIBS)
LINK       = $(CC) $(SANFLAGS) $(LLD) $(STATIC_LD) $(LDFLAGS)

# ---- what is built ------------------------------------------------------------------------------
LIBS    := $(B)/libditron-rt.a $(B)/libditron-rt.so $(B)/libditron.a $(B)/libditron.so
PROGRAM := $(if $(CLI_SRC),$(B)/ditron)
UNITS   := $(patsubst tests/unit/%.c,$(B)/tests/%,$(UNIT_SRC))
# The Python package as it is imported from the build: PYTHONPATH=$(B)/python. Not under sanitizers, which Python lacks.
PY_SRC     := $(wildcard python/ditron/*.c)
PY_INC     := $(if $(SAN),,$(wildcard $(shell python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null)/Python.h))
PY         := $(B)/python/ditron
PY_PACKAGE := $(if $(and $(PY_SRC),$(PY_INC),$(CLI_SRC)),$(PY)/ready)

.PHONY: all lib units objs bench-interp bench-launch help setup corpus sweep mutate test test-unit demo install dist wheel check-gpu clean format format-check lint-layers
.DELETE_ON_ERROR:
.SECONDARY:
all: $(LIBS) $(PROGRAM) $(PY_PACKAGE)
lib: $(LIBS)
units: $(if $(ROOM),$(filter $(foreach r,$(ROOM),$(B)/tests/$(r)_%),$(UNITS)),$(UNITS))

$(MODE)/obj/src/target/%: WARN += $(LLVM_CFLAGS)
$(MODE)/obj/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(ALL_CFLAGS) $(WARN) -MMD -MP -c -o $@ $<
$(MODE)/obj/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(ALL_CFLAGS) $(WARN) -Itests -MMD -MP -c -o $@ $<

$(DEPS)/obj/%.o: $(GRAMMAR)/%.c
	@mkdir -p $(@D)
	$(call say,CC) $(CC) -std=gnu11 -O1 -w -fPIC -fvisibility=hidden -DTREE_SITTER_HIDE_SYMBOLS -Isrc/front/grammar \
	  -ffile-prefix-map=$(CURDIR)=. -c -o $@ $<

define archive
@mkdir -p $(@D) && rm -f $@
$(call say,AR) ar rcsD $@ $^
endef
$(B)/libditron-rt.a: $(call obj,$(RT_SRC)); $(archive)
$(B)/libditron.a: $(call obj,$(FULL_SRC)) $(GRAMMAR_OBJ); $(archive)

# The shared libraries export what ditron.h marks DT_API, nothing else. libditron carries its own copy of the
# rooms without state and takes everything that has state from libditron-rt.
SHARED = $(LINK) -shared -Wl,-soname,$(@F).0 -Wl,--exclude-libs,ALL -Wl,-z,defs
$(B)/libditron-rt.so: $(call obj,$(RT_SRC))
	@mkdir -p $(@D)
	$(call say,LD) $(SHARED) -o $@ $^ $(BASE_LIBS)
	@ln -sf $(@F) $@.0
$(B)/libditron.so: $(call obj,$(FULL_SRC) $(BOTH_SRC)) $(GRAMMAR_OBJ) | $(B)/libditron-rt.so
	@mkdir -p $(@D)
	$(call say,LD) $(SHARED) -Wl,-rpath,'$$ORIGIN' -o $@ $^ -L$(B) -lditron-rt $(FULL_LIBS)
	@ln -sf $(@F) $@.0

$(B)/ditron: $(call obj,$(CLI_SRC)) $(B)/libditron.a $(B)/libditron-rt.a
	$(call say,LD) $(LINK) -o $@ $(filter %.o,$^) $(B)/libditron.a $(B)/libditron-rt.a $(FULL_LIBS)

# ---- the Python package ---------------------------------------------------------------------------
# Own code on the limited API, so one build serves every CPython from 3.9 on; a program over the same libraries compiles
# in child processes. In the build libraries and kernels are links, in a wheel copies.
PY_FILES := $(shell find python -name '*.py')
$(MODE)/obj/python/%.o: python/%.c
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(ALL_CFLAGS) $(WARN) -DPy_LIMITED_API=0x03090000 -isystem $(dir $(PY_INC)) -MMD -MP -c -o $@ $<
$(PY)/_ditron.abi3.so: $(call obj,$(PY_SRC)) $(B)/libditron.so
	@mkdir -p $(@D)
	$(call say,LD) $(LINK) -shared -Wl,-rpath,'$$ORIGIN/_native/lib' -o $@ $(filter %.o,$^) -L$(B) -lditron -lditron-rt $(BASE_LIBS)
$(PY)/_native/bin/ditron: $(call obj,$(CLI_SRC)) $(B)/libditron.so
	@mkdir -p $(@D)
	$(call say,LD) $(LINK) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(filter %.o,$^) -L$(B) -lditron -lditron-rt $(BASE_LIBS)
$(PY)/ready: $(PY)/_ditron.abi3.so $(PY)/_native/bin/ditron $(PY_FILES)
	@mkdir -p $(PY)/_native/lib $(PY)/_native/share/ditron
	@for l in libditron-rt libditron; do ln -sf ../../../../$$l.so $(PY)/_native/lib/$$l.so.0 || exit 1; done
	@ln -sfn $(CURDIR)/kernels $(PY)/_native/share/ditron/kernels
	@cd python && cp --parents $(patsubst python/%,%,$(PY_FILES)) $(abspath $(B)/python)
	@touch $@

# Unit tests see the hidden names. Those of a lower room link only the rooms that it may know, which also proves
# that it needs no others; all the rest link everything.
ROOMS_base  := base
ROOMS_image := base image
ROOMS_ir    := base ir
ROOMS_front := base ir front
ROOMS_pass  := base ir pass
ROOMS_target := base image ir target target/x86 target/nvptx target/amdgpu
unit_room    = $(firstword $(subst _, ,$(notdir $(1))))
unit_objs    = $(if $(ROOMS_$(1)),$(call obj,$(call room,$(ROOMS_$(1)))) $(if $(filter front,$(1)),$(GRAMMAR_OBJ)),\
  $(if $(filter base image rt ops,$(1)),,$(B)/libditron.a) $(B)/libditron-rt.a)
unit_libs    = $(if $(filter base image rt ops ir pass,$(1)),$(BASE_LIBS),$(if $(filter front,$(1)),$(PARSE_LIBS) $(BASE_LIBS),$(FULL_LIBS)))
# a stand-in for NVIDIA's driver, for the tests of the CUDA device
FAKE_CUDA := $(B)/tests/libcuda_fake.so
$(FAKE_CUDA): $(MODE)/obj/tests/fake/cuda.o
	@mkdir -p $(@D)
	$(call say,LD) $(LINK) -shared -o $@ $^ $(BASE_LIBS)
$(B)/tests/rt_cuda $(B)/tests/rt_cuda_map $(B)/tests/api_cuda $(B)/tests/api_tma: | $(FAKE_CUDA)
.SECONDEXPANSION:
$(UNITS): $(B)/tests/%: $(MODE)/obj/tests/unit/%.o $(call obj,$(HARNESS_SRC)) $$(call unit_objs,$$(call unit_room,$$*))
	@mkdir -p $(@D)
	$(call say,LD) $(LINK) -o $@ $^ -lcmocka $(call unit_libs,$(call unit_room,$*))
objs: $(call obj,$(if $(ROOM),$(call room,$(ROOM)),$(RT_SRC) $(FULL_SRC) $(CLI_SRC)))

-include $(patsubst %.o,%.d,$(call obj,$(RT_SRC) $(FULL_SRC) $(CLI_SRC) $(PY_SRC) $(UNIT_SRC) $(HARNESS_SRC) tests/fake/cuda.c))

# ---- benches beside `ditron bench` ------------------------------------------------------------------
$(B)/bench/interp: bench/interp.c $(call obj,$(call room,base ir))
	@mkdir -p $(@D)
	$(call say,LD) $(LINK) $(ALL_CFLAGS) $(WARN) -o $@ $^ $(BASE_LIBS)
bench-interp: $(B)/bench/interp
	@$<
$(B)/bench/launch: bench/launch.c $(B)/libditron-rt.a
	@mkdir -p $(@D)
	$(call say,LD) $(LINK) $(ALL_CFLAGS) $(WARN) -o $@ $^ $(BASE_LIBS)
bench-launch: $(B)/bench/launch
	@$<

# ---- tests --------------------------------------------------------------------------------------
JOBS := $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
setup:
	@scripts/setup
# The unit tests run again under the address and undefined sanitizers, those of the rooms with threads under the
# thread sanitizer too. QUICK=1 leaves that out.
TSAN_ROOMS := rt api
ASAN_B := $(BUILD)/san-address-undefined
TSAN_B := $(BUILD)/san-thread
test: setup
	@$(MAKE) --no-print-directory $(JOBS) all units
	$(if $(QUICK)$(SAN),,@$(MAKE) --no-print-directory $(JOBS) SAN=address,undefined units)
	$(if $(QUICK)$(SAN),,@$(MAKE) --no-print-directory $(JOBS) SAN=thread units ROOM='$(TSAN_ROOMS)')
	@tests/run --build $(B) $(if $(QUICK)$(SAN),,--san $(ASAN_B): --san $(TSAN_B):$(subst $() ,$(comma),$(TSAN_ROOMS))) $(ARGS)
test-unit: # ROOM=ir: only that room's, without set-up
	@$(MAKE) --no-print-directory $(JOBS) units
	@tests/run --build $(B) $(if $(ROOM),$(foreach r,$(ROOM),unit/$(r)_),unit/) $(ARGS)
# Real kernels from installed packages (some GB the first time): make corpus ARGS="liger --jobs 1"; on a GPU: ARGS="--device cuda:0"
corpus: setup
	@$(MAKE) --no-print-directory $(JOBS) all
	@scripts/setup-corpus
	@$(DEPS)/corpus/bin/python tests/corpus/run.py --build $(B) $(ARGS)
# Every jit function of those packages read by the front end: make sweep ARGS="--packages liger_kernel --show"
sweep: setup
	@$(MAKE) --no-print-directory $(JOBS) all
	@scripts/setup-corpus
	@$(DEPS)/corpus/bin/python tests/corpus/sweep.py --build $(B) --most 10 --triton $(ARGS)
# The kernels that the corpus launches, damaged: make mutate ARGS="--mutants 20 --seed 7 softmax"
LAUNCHES := $(BUILD)/corpus-launches.json
$(LAUNCHES): $(wildcard tests/corpus/cases_*.py tests/corpus/harness.py)
	@$(DEPS)/corpus/bin/python tests/corpus/run.py --build $(B) --record $@
mutate: setup
	@$(MAKE) --no-print-directory $(JOBS) all
	@scripts/setup-corpus
	@$(MAKE) --no-print-directory $(LAUNCHES)
	@$(DEPS)/corpus/bin/python tests/corpus/mutate.py --build $(B) --launches $(LAUNCHES) $(ARGS)
demo: setup
	@$(MAKE) --no-print-directory $(JOBS) all
	@BUILD=$(B) scripts/demo

lint-layers:
	@scripts/check-layers
SOURCES := $(wildcard include/ditron/*.h src/*/*.[ch] src/*/*/*.[ch] tests/*/*.[ch] examples/c/*.[ch] bench/*.[ch] python/ditron/*.[ch])
format:
	clang-format -i $(SOURCES)
format-check:
	@echo $(SOURCES) | xargs -n1 -P2 sh -c 'clang-format $$0 | cmp -s $$0 - || { echo "$$0: run make format"; exit 1; }'

# ---- install ------------------------------------------------------------------------------------
D := $(DESTDIR)$(PREFIX)
define pc
prefix=$(PREFIX)
libdir=$${prefix}/lib
includedir=$${prefix}/include

Name: $(1)
Description: $(2)
Version: $(VERSION)
Cflags: -I$${includedir}
Libs: -L$${libdir} $(3)-l$(1)$(4)
endef
export PC_RT   := $(call pc,ditron-rt,Ditron run time: runs compiled tile programs)
comma := ,
# operators ask for the compiler through a weak reference, which keeps no library
export PC_FULL := $(call pc,ditron,Ditron compiler for tile programs over many devices,-Wl$(comma)--push-state$(comma)--no-as-needed , -Wl$(comma)--pop-state)
ifeq ($(STATIC),)
install:
	@$(MAKE) --no-print-directory $(JOBS) STATIC=1 install
else
install: all
	install -d $(D)/include/ditron $(D)/lib/pkgconfig $(D)/bin $(D)/share/ditron/kernels
	install -m 644 include/ditron/*.h $(D)/include/ditron
	install -m 644 $(B)/libditron-rt.a $(B)/libditron.a $(D)/lib
	for l in libditron-rt libditron; do \
	  install -s -m 755 $(B)/$$l.so $(D)/lib/$$l.so.0 && ln -sf $$l.so.0 $(D)/lib/$$l.so || exit 1; \
	done
	printf '%s\n' "$$PC_RT" 'Libs.private: $(BASE_LIBS)' > $(D)/lib/pkgconfig/ditron-rt.pc
	printf '%s\n' "$$PC_FULL" 'Requires: ditron-rt' 'Libs.private: $(FULL_LIBS)' > $(D)/lib/pkgconfig/ditron.pc
	$(if $(PROGRAM),install -s -m 755 $(PROGRAM) $(D)/bin/ditron)
	cp -r kernels/. $(D)/share/ditron/kernels
endif

# ---- GPUs ------------------------------------------------------------------------------------------
# One archive that runs where there is nothing but glibc 2.35 and, for GPUs, a driver: the program over the shared
# libraries, which hold LLVM; headers, kernels, examples, benches, and the tests of GPUs.
DIST := $(B)/ditron-$(VERSION)-linux-x86_64
ifeq ($(STATIC),)
dist:
	@$(MAKE) --no-print-directory $(JOBS) STATIC=1 dist
else
$(B)/dist/ditron: $(call obj,$(CLI_SRC)) $(B)/libditron.so
	@mkdir -p $(@D)
	$(call say,LD) $(LINK) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(filter %.o,$^) -L$(B) -lditron -lditron-rt $(BASE_LIBS)
dist: $(B)/dist/ditron $(B)/bench/launch $(B)/tests/rt_cuda
	@scripts/dist $(B) $(DIST)
endif
ifeq ($(STATIC),)
wheel:
	@$(MAKE) --no-print-directory $(JOBS) STATIC=1 wheel
else
wheel: $(PY_PACKAGE)
	@scripts/wheel $(B) $(VERSION)
endif
check-gpu: setup # the GPU tests, where there is a GPU; says so where there is none
	@$(MAKE) --no-print-directory $(JOBS) all $(B)/tests/rt_cuda $(B)/tests/api_tma
	@tests/gpu/run $(B) $(ARGS)

clean:
	rm -rf $(MODE)/obj $(B)/tests $(LIBS) $(addsuffix .0,$(filter %.so,$(LIBS))) $(B)/ditron
help:
	@echo 'all test test-unit bench-interp bench-launch corpus sweep mutate demo install dist wheel check-gpu clean format format-check lint-layers; see the top of the Makefile'
