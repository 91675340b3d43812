#!/bin/sh
# many-cpus.sh PLAN: a machine of many CPUs, emulated by few: a reservation on CPU 0 among hogs, hogs on the last CPU, hogs that go
# where a CPU is idle, and more of them for each shared node that the plan has for them. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

last=$(sed 's/.*-//' /sys/devices/system/cpu/online)
begin many "$1" --contention || exit
at=$(in_ms 12000) # all are started and matched by then, also where the host has other work
meter service --name audio --budget 2ms --start "$at" --time 4s >/out/audio.meter &
meters=$!
taskset -c 0 meter hogs --count 2 --start "$at" --time 4s >/out/first.meter &
meters="$meters $!"
taskset -c "$last" meter hogs --count 2 --start "$at" --time 4s >/out/last.meter &
meters="$meters $!"
meter hogs --count 2 --start "$at" --time 4s >/out/free.meter &
meters="$meters $!"
tasks="audio first last free"
for shared in pair couple; do
	grep -q "tasks.$shared" "$1" || continue
	meter hogs --name $shared --count 3 --start "$at" --time 4s >/out/$shared.meter &
	meters="$meters $!"
	tasks="$tasks $shared"
done
# shellcheck disable=SC2086 # a list
wait $meters
for task in $tasks; do
	say "$task" "$(cat "/out/$task.meter")"
done
say last-cpu "$last"
finish TERM
