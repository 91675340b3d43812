#!/bin/sh
# Periods and works of rt-app's threads, which are known. The cases are named by the arguments. See crates/tierce-cli/tests/calibrate.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# calibrate CASE ARGUMENT...: its profiles, and its exit code
calibrate() {
	case=$1
	shift
	tierce calibrate --json --margin 0 "$@" >"/out/$case.json" 2>"/out/$case.err"
	say "$case" "{\"code\":$?}"
}

for case; do
	calibrate "$case" -- rt-app "$case.json"
done

# A program that runs already, as a whole and one thread of it.
rt-app running.json >/out/running.log 2>&1 &
program=$!
sleep 0.5
calibrate process --for 2s --dry-run --pid $program
calibrate thread --for 2s --dry-run --tid "$(grep -l '^steady' /proc/$program/task/*/comm | sed 's|/comm$||; s|.*/||' | head -n 1)"
kill $program
wait $program

# The profile of the last one, and a plan from it.
tierce calibrate --list >/out/list
say list "{\"code\":$?}"
tierce calibrate --check rt-app >/out/check
say check "{\"code\":$?}"
tierce calibrate --show rt-app --importance high --plan >/out/plan.toml
say plan "{\"code\":$?}"
tierce check plan.toml >/out/none 2>&1
say no-plan "{\"code\":$?}"
tierce check /out/plan.toml >/out/verdict 2>&1
say verdict "{\"code\":$?}"
cp -r /var/lib/tierce/profiles /out

# With a plan in force, nothing is watched.
begin force /out/plan.toml
tierce calibrate --for 1s --tid 1 >/out/force.said 2>&1
say refused "{\"code\":$?}"
finish INT
