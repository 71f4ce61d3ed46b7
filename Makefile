# make demo     from a bare Debian 12 with git and make to scored rows
# make test     build and run every test
# make help     the rest
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
BUILD := build/release
PACKAGE_BUILD := build/python/package
SAMPLE := tests/data/smollm2_rollouts_bf16.safetensors
# Sanitizers: which tests run under them, as a regular expression on ctest's names. For threads: those that have several.
ASAN_TESTS ?= .
# Minutes of NVRTC's work, none of ours; and a model that checks the bounds of its device's memory by itself.
ASAN_SKIPPED ?= ^(cuda_compile|cuda_model_.*|gpu_model.*)$$
TSAN_TESTS ?= ^(cache|cpu_calls|cpu_threads|cuda_fake|runtime)$$
TSAN_TARGETS := test_cache test_cpu test_cuda_fake test_runtime
# Another LLVM than the first that is found: BILOGP_LLVM_VERSION=22 make test
CONFIGURE := cmake $(if $(BILOGP_LLVM_VERSION),-DBILOGP_LLVM_VERSION=$(BILOGP_LLVM_VERSION)) --preset

.PHONY: help deps build demo cuda-tools test test-python test-torch wheel bench lint lint-format format test-asan test-tsan fuzz clean

help:
	@echo 'make demo       install what is missing, build, score the sample of real logits'
	@echo 'make test       install what is missing, build, run all tests'
	@echo 'make test-python  the tests of the Python package alone, over numpy (part of make test)'
	@echo 'make test-torch   the same with torch, jax and TRL from PyPI (6 GB of disk), and the notebook'
	@echo 'make wheel      build the wheel that carries its own compiler, and test it in a fresh environment'
	@echo 'make build      build everything in release mode into $(BUILD)'
	@echo 'make cuda-tools  fetch NVRTC and nvdisasm with pip, so that make test also compiles all CUDA kernels'
	@echo 'make bench      build and run the benchmarks'
	@echo 'make lint       check formatting and run clang-tidy'
	@echo 'make format     format the sources'
	@echo 'make test-asan  the tests under AddressSanitizer and UndefinedBehaviorSanitizer; test-tsan: ThreadSanitizer'
	@echo 'make fuzz       each libFuzzer target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make deps       only install the packages that all of these need'
	@echo 'make clean      remove build/'

deps:
	@runtime/dependencies.sh build test bench lint

build:
	@runtime/dependencies.sh build test bench
	$(CONFIGURE) release -DBILOGP_BUILD_TESTS=ON -DBILOGP_BUILD_BENCH=ON
	cmake --build --preset release -j $(JOBS)

# The store is the demo's own and starts empty, so that the first run compiles and the second one does not.
demo:
	@runtime/dependencies.sh build
	@if [ ! -f $(BUILD)/build.ninja ]; then \
	   $(CONFIGURE) release -DBILOGP_BUILD_TESTS=OFF -DBILOGP_BUILD_BENCH=OFF; fi
	cmake --build --preset release -j $(JOBS) --target bilogp-score
	@rm -rf build/demo-store
	@echo; echo '== First run: the kernels are compiled =='; echo
	BILOGP_CACHE_DIR=build/demo-store $(BUILD)/bilogp-score $(SAMPLE) --invariance
	@echo; echo '== Second run: the kernels come from the store =='; echo
	BILOGP_CACHE_DIR=build/demo-store $(BUILD)/bilogp-score $(SAMPLE)

# For a machine without CUDA; says so where there is no network, and the tests that need them are skipped.
cuda-tools:
	@runtime/dependencies.sh test
	@tests/cuda/fetch_tools.sh build/cuda-tools

test: build
	ctest --preset release -j $(JOBS)
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tests/python/run.sh numpy

test-python: build
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tests/python/run.sh numpy

test-torch: build
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tests/python/run.sh torch

wheel: build
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) python/build_wheel.sh
	@BILOGP_TEST_REFERENCE=$(CURDIR)/$(BUILD)/libbilogp_reference_c.so python/test_wheel.sh $${PYTHON:-python3}

bench: build
	@shopt -s nullglob; programs=($(BUILD)/bench_*); \
	 if [ $${#programs[@]} -eq 0 ]; then echo 'make bench: no programs $(BUILD)/bench_*' >&2; exit 1; fi; \
	 for program in "$${programs[@]}"; do echo "== $$program"; "$$program"; done

SOURCES = $$(git ls-files '*.cpp' '*.hpp' '*.h' '*.kernel')

lint-format:
	@runtime/dependencies.sh lint
	clang-format-19 --dry-run -Werror $(SOURCES)

lint: lint-format
	@runtime/dependencies.sh build test bench lint
	$(CONFIGURE) release -DBILOGP_BUILD_TESTS=ON -DBILOGP_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release -j $(JOBS) --target bilogp_templates
	run-clang-tidy-19 -quiet -p $(BUILD) -j $(JOBS) '^$(CURDIR)/(runtime|cache|tests|bench)/'
	@if [ -f $(PACKAGE_BUILD)/compile_commands.json ]; then \
	   run-clang-tidy-19 -quiet -p $(PACKAGE_BUILD) -j $(JOBS) '^$(CURDIR)/python/src/'; \
	 else echo 'make lint: python/src is left out; make test-python builds it'; fi

format:
	clang-format-19 -i $(SOURCES)

test-asan:
	@runtime/dependencies.sh build test
	$(CONFIGURE) asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS) -R '$(ASAN_TESTS)' -E '$(ASAN_SKIPPED)'

test-tsan:
	@runtime/dependencies.sh build test
	$(CONFIGURE) tsan
	cmake --build --preset tsan -j $(JOBS) --target $(TSAN_TARGETS)
	ctest --preset tsan -j $(JOBS) -R '$(TSAN_TESTS)'

fuzz:
	@runtime/dependencies.sh build test
	JOBS=$(JOBS) tests/fuzz/run.sh $(FUZZ_SECONDS)

clean:
	rm -rf build
