#!/bin/bash
# Builds the libFuzzer targets in build/fuzz and runs each for SECONDS (60 unless given); stops at the first finding.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "${JOBS:-2}" --target fuzz_targets
python3 tests/fuzz/seeds.py build/fuzz/corpus
for target in safetensors npy dlpack store_row; do
  echo "== fuzz_$target, $seconds s"
  build/fuzz/fuzz_$target -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix=build/fuzz/ \
    -print_final_stats=1 build/fuzz/corpus/fuzz_$target 2>&1 | tail -n 12
  [ "${PIPESTATUS[0]}" -eq 0 ]
done
