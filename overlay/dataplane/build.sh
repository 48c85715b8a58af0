#!/usr/bin/env bash
# Builds the data plane into the checkout's build/, and puts its programs into bin/.
set -euo pipefail
cd "$(dirname "$0")/../.."

[[ -d build/none ]] || meson setup build/none overlay/dataplane
meson compile -C build/none
mkdir -p bin
cp --remove-destination build/none/ktsnd build/none/ktsn-talker build/none/ktsn-bench build/none/libktsn.so bin/
