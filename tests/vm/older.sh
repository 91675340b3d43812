#!/bin/sh
# An older kernel, one boot: a reservation beside hogs. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

say release "\"$(uname -r)\""
begun=$(now_ms)
begin older one-cpu.toml --trace /out/older.trace || exit
say load "$(($(now_ms) - begun))"
say short "$(meter service --name short --budget 2ms --hogs 4 --time 2s --segments /out/short.csv)"
finish TERM
