#!/bin/sh
# many-cpus.sh PLAN: a machine of many CPUs, emulated by few: a reservation on CPU 0 among hogs, hogs on the last CPU, hogs that go
# where a CPU is idle, and more of them if the plan has a shared node for them. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

last=$(sed 's/.*-//' /sys/devices/system/cpu/online)
begin many "$1" || exit
at=$(in_ms 2000)
meter service --name audio --budget 2ms --start "$at" --time 4s >/out/audio.meter &
meters=$!
taskset -c 0 meter hogs --count 2 --start "$at" --time 4s >/out/first.meter &
meters="$meters $!"
taskset -c "$last" meter hogs --count 2 --start "$at" --time 4s >/out/last.meter &
meters="$meters $!"
meter hogs --count 2 --start "$at" --time 4s >/out/free.meter &
meters="$meters $!"
tasks="audio first last free"
if grep -q pair "$1"; then
	meter hogs --name pair --count 3 --start "$at" --time 4s >/out/pair.meter &
	meters="$meters $!"
	tasks="$tasks pair"
fi
# shellcheck disable=SC2086 # a list
wait $meters
for task in $tasks; do
	say "$task" "$(cat "/out/$task.meter")"
done
say last-cpu "$last"
finish TERM
