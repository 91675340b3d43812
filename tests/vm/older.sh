#!/bin/sh
# An older kernel, one boot: a plan for a given time. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

say release "\"$(uname -r)\""
begin older one-cpu.toml --for 3s || exit
say short "$(meter service --name short --budget 2ms --hogs 4 --start "$(in_ms 500)" --time 1s)"
wait "$loader"
say over "{\"code\":$?,\"state\":\"$(state)\"}"
