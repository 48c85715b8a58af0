#!/usr/bin/env bash
# Builds the data plane and runs its tests, as it is and under sanitizers. What is
# built lies in the checkout's build/.
set -euo pipefail
cd "$(dirname "$0")/../../.."

for sanitize in none address,undefined; do
	build=build/$sanitize
	[[ -d $build ]] || meson setup -Db_sanitize="$sanitize" "$build" overlay/dataplane
	meson test -C "$build" --print-errorlogs
done
