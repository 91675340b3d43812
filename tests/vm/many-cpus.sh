#!/bin/sh
# A machine of many CPUs, emulated by few: a reservation on CPU 0 among hogs, hogs on the last CPU, and hogs that go where a CPU
# is idle. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

last=$(sed 's/.*-//' /sys/devices/system/cpu/online)
begin many many-cpus.toml || exit
at=$(in_ms 2000)
meter service --name audio --budget 2ms --start "$at" --time 4s >/out/audio.meter &
meters=$!
taskset -c 0 meter hogs --count 2 --start "$at" --time 4s >/out/first.meter &
meters="$meters $!"
taskset -c "$last" meter hogs --count 2 --start "$at" --time 4s >/out/last.meter &
meters="$meters $!"
meter hogs --count 2 --start "$at" --time 4s >/out/free.meter &
meters="$meters $!"
# shellcheck disable=SC2086 # a list
wait $meters
for task in audio first last free; do
	say $task "$(cat /out/$task.meter)"
done
say last-cpu "$last"
finish TERM
