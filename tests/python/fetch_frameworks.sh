#!/usr/bin/env bash
# Fetches the released packages of verl and OpenRLHF without their dependencies: their functions for log-probabilities
# are loaded from these files alone, to be compared with the recipes that replace them.
set -euo pipefail
environment=$1
"$environment/bin/pip" download --quiet --no-deps --only-binary :all: --python-version 3.11 --implementation cp \
  --platform manylinux1_x86_64 --dest "$environment/frameworks" verl==0.9.1 openrlhf==0.11.2
