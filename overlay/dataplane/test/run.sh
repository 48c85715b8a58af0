#!/usr/bin/env bash
# Runs the data plane's tests, as it is and under sanitizers, in the checkout's build/.
set -euo pipefail
cd "$(dirname "$0")/../../.."

for sanitize in none address,undefined thread; do
	build=build/$sanitize
	[[ -d $build ]] || meson setup -Db_sanitize="$sanitize" "$build" overlay/dataplane
	# Where addresses are random over more bits than TSan knows of, it ends at once.
	setarch --addr-no-randomize meson test -C "$build" --print-errorlogs
done
