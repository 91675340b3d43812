#!/bin/sh
# Two CPUs, one boot: trees apart, a node below both, affinity. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

begin two two-cpus.toml --trace /out/two.trace || exit
at=$(in_ms 1500)
meter service --name left --budget 2ms --start "$at" --time 2s --segments /out/left.csv >/out/left.meter &
meters=$!
meter service --name right --budget 3ms --period 20ms --start "$at" --time 2s >/out/right.meter &
meters="$meters $!"
meter spin --name hyper --start "$at" --time 2s >/out/hyper.meter &
meters="$meters $!"
meter hogs --count 4 --start "$at" --time 2s >/out/rest.meter
# shellcheck disable=SC2086 # a list
wait $meters
for task in left right hyper rest; do
	say $task "$(cat /out/$task.meter)"
done

# Affinity that changes while it runs.
at=$(in_ms 500)
meter hogs --count 3 --start "$at" --time 1500ms >/out/affinity.meter &
meters=$!
sleep 0.7
for pid in $(pidof meter); do
	taskset -p 2 "$pid" >/dev/null
done
sleep 0.3
for pid in $(pidof meter); do
	taskset -p 1 "$pid" >/dev/null
done
sleep 0.3
for pid in $(pidof meter); do
	taskset -p 3 "$pid" >/dev/null
done
wait $meters
say affinity "$(cat /out/affinity.meter)"

finish INT
