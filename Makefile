# Each goal does all the set-up that it needs; a second call starts in seconds.
PYTHON := $(or $(QACT_PYTHON),$(CURDIR)/.venv/bin/python)
BUILD := build
SANITIZED := $(BUILD)/sanitized
MUTANTS := $(BUILD)/mutants
THREADS := $(shell nproc)
# Programs that run side by side have one core each: more threads would wait for each other, and
# those that a test asks for must not spin meanwhile.
SIDE_BY_SIDE := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive

# In continuous integration, warnings are errors.
WARNINGS := $(if $(CI),-DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
# A Python that is used as it is (QACT_PYTHON) need not have clang-format: then its check is left out.
CLANG_FORMAT := $(dir $(PYTHON))clang-format
FORMAT_VERSION := $(shell sed -n s/^clang-format==//p scripts/requirements.txt)

.PHONY: help demo test test-package test-python-all wheel bench configured build setup format check-format sanitize sanitized mutants mutants-cuda clean

help:
	@echo "make demo      train, corrupt, evaluate, compare: ends with a page to open"
	@echo "make test      build and run all tests, the core ones under sanitizers too"
	@echo "make bench     time the layer next to BatchNorm + ReLU; writes $(BUILD)/bench.json"
	@echo "make wheel     the Python package as a file, in $(BUILD)/wheel (CUDA=1: with CUDA kernels)"
	@echo "make test-python-all  the package with ONNX, AOTInductor, Lightning, torchvision, timm, ..."
	@echo "make build     the library, the program, the tests and the benchmark, in $(BUILD)/"
	@echo "make sanitize  all tests that need no torch, under sanitizers"
	@echo "make mutants   break each kernel on purpose: a test must notice (mutants-cuda: on a GPU)"
	@echo "make format    format all C++ and CUDA sources; make test checks it"
	@echo "make setup     what the others need, without building"
	@echo "make clean     remove what was built"
	@echo
	@echo "QACT_PYTHON=PATH uses that Python's torch (2.11 to 2.15) and installs nothing into it."

setup:
	@scripts/setup

configured: setup
	@test -f $(BUILD)/build.ninja || cmake -G Ninja -S . -B $(BUILD) -DQACT_PYTHON=$(PYTHON) $(WARNINGS)

build: configured
	@cmake --build $(BUILD)

# The program alone: half of the whole build.
demo: configured
	@cmake --build $(BUILD) --target qact-cli
	@scripts/demo $(BUILD)/qact

format: setup
	@scripts/format $(CLANG_FORMAT)

check-format: setup
	@if [ -n "$(QACT_PYTHON)" ] && \
	  ! $(CLANG_FORMAT) --version 2>/dev/null | grep -qF "$(FORMAT_VERSION)"; then \
	  echo "test: no clang-format $(FORMAT_VERSION) beside $(PYTHON): formatting is not checked" >&2; \
	else scripts/format --check $(CLANG_FORMAT); fi

test: check-format build sanitized
	@cmake --build $(SANITIZED) --target core_tests
	@$(SANITIZED)/tests/core_tests --gtest_brief=1 & \
	  $(SIDE_BY_SIDE) ctest --test-dir $(BUILD) --output-on-failure -j $(THREADS); \
	  failed=$$?; wait $$! || failed=1; exit $$failed
	@QACT_LIBRARY=$(BUILD)/libqact_ops.so $(PYTHON) -m pytest -q tests/python
	@$(MAKE) --no-print-directory test-package

# The libraries are those of the build: nothing is compiled again. With CUDA=1 all are built for the
# wheel, which takes nvcc and a quarter of an hour.
ifdef CUDA
WHEEL_LIBRARIES := -C build-dir=$(CURDIR)/$(BUILD)/wheel-cuda -C cmake.define.QACT_CUDA=ON
wheel: setup
else
WHEEL_LIBRARIES := -C cmake.define.QACT_PYTHON_LIBRARY=$(CURDIR)/$(BUILD)/python/_ops.so
wheel: build
endif
	@rm -rf $(BUILD)/wheel
	@$(PYTHON) -m pip --disable-pip-version-check wheel --quiet --no-deps --no-index \
	  --no-build-isolation --wheel-dir $(BUILD)/wheel $(WHEEL_LIBRARIES) .
	@ls $(BUILD)/wheel/*.whl

test-package: wheel
	@scripts/test_package $(BUILD) $(PYTHON)
	@scripts/test_emulated_cuda $(BUILD) $(PYTHON)

test-python-all: test-package
	@scripts/test_package --all $(BUILD) $(PYTHON)

bench: wheel
	@$(BUILD)/qact-bench
	@scripts/install_package $(BUILD) $(PYTHON)
	@cd $(BUILD) && venv/bin/python ../scripts/bench_package.py bench.json libqact_ops.so
	@$(PYTHON) scripts/bench_distributed.py $(BUILD)
	@if $(PYTHON) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
	  $(PYTHON) scripts/bench_compiled.py $(BUILD)/libqact_ops.so; fi

sanitize: sanitized
	@cmake --build $(SANITIZED)
	@$(SIDE_BY_SIDE) ctest --test-dir $(SANITIZED) --output-on-failure -j $(THREADS)

sanitized: setup
	@test -f $(SANITIZED)/build.ninja || cmake -G Ninja -S . -B $(SANITIZED) \
	  -DQACT_PYTHON=$(PYTHON) -DQACT_TORCH=OFF -DQACT_SANITIZE=ON

# Those of CUDA run emulated; mutants-cuda runs them, and what both devices share, on a GPU.
mutants: setup
	@test -f $(MUTANTS)/build.ninja || cmake -G Ninja -S . -B $(MUTANTS) \
	  -DQACT_PYTHON=$(PYTHON) -DQACT_CUDA=OFF -DQACT_BENCH=OFF -DQACT_MUTANTS=ON
	@cmake --build $(MUTANTS) --target core_tests core_cuda_tests torch_mutants
	@scripts/mutants $(MUTANTS)

mutants-cuda: setup
	@test -f $(MUTANTS)-cuda/build.ninja || cmake -G Ninja -S . -B $(MUTANTS)-cuda \
	  -DQACT_PYTHON=$(PYTHON) -DQACT_CUDA=ON -DQACT_BENCH=OFF -DQACT_MUTANTS=ON
	@cmake --build $(MUTANTS)-cuda --target cuda_tests
	@scripts/mutants --cuda $(MUTANTS)-cuda

clean:
	rm -rf $(BUILD)
