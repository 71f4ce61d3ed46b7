#!/usr/bin/env bash
# Fetches NVRTC and nvdisasm from PyPI into a directory, for checking CUDA kernels on a machine without CUDA.
#
#   tests/cuda/fetch_tools.sh DIRECTORY
#
# Says so and leaves the directory without them where there is no network: the checks are then skipped, and say so.
set -euo pipefail

directory=${1:?usage: fetch_tools.sh DIRECTORY}
nvrtc=nvidia-cuda-nvrtc==13.0.88
nvdisasm=nvidia-cuda-nvdisasm==13.5.37
marker="$directory/fetched"

if [ -f "$marker" ] && [ "$(cat "$marker")" = "$nvrtc $nvdisasm" ]; then
  exit 0
fi
mkdir -p "$directory"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! python3 -m pip install --quiet --no-deps --no-input --disable-pip-version-check --upgrade --only-binary=:all: \
  --target "$directory/site" "$nvrtc" "$nvdisasm" >"$log" 2>&1; then
  echo "CUDA kernels will not be checked: pip could not fetch $nvrtc and $nvdisasm ($(tail -n 1 "$log"))" >&2
  exit 0
fi
find "$directory/site" -name nvdisasm -type f -exec chmod +x {} +
echo "$nvrtc $nvdisasm" >"$marker"
