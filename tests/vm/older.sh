#!/bin/sh
# An older kernel, one boot: a reservation beside hogs. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

say release "\"$(uname -r)\""
begun=$(now_ms)
begin older one-cpu.toml --trace /out/older.trace || exit
say load "$(($(now_ms) - begun))"
# Six seconds, of which the host may take some.
service() {
	meter service --name short --budget 2ms --hogs 4 --start "$at" --time 6s --segments /out/short.csv >/out/short.meter &
	meters=$!
}
together service 3000 places 1
wait "$meters"
say short "$(cat /out/short.meter)"
settled older-held
finish TERM
