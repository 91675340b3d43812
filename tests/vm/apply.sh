#!/bin/sh
# A plan in force becomes another, one CPU, one boot. See crates/tierce-cli/tests/apply.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# status SCENARIO: who is where
status() {
	say "$1" "$(tierce status --json | tr -d '\n')"
}

apply nobody apply-a.toml
begin apply apply-a.toml --policies round-robin --trace /out/apply.trace --record /out/apply.rec --stats-every 1s || exit
tierce run apply-a.toml >/out/second 2>&1
say second "{\"code\":$?,\"said\":\"$(tail -n 1 /out/second)\"}"

at=$(in_ms 1000)
meter service --name steady --budget 2ms --start "$at" --time 6500ms --segments /out/steady.csv >/out/steady.meter &
meters=$!
meter service --name grow --budget 2ms --period 20ms --start "$at" --time 6500ms >/out/grow.meter &
meters="$meters $!"
for n in 1 2; do
	meter spin --name extra --start "$at" --time 6500ms >/out/extra-$n.meter &
	meters="$meters $!"
done
meter hogs --name hogs --count 2 --start "$at" --time 6500ms >/out/hogs.meter &
meters="$meters $!"
sleep 1.6

apply dry apply-b.toml --dry-run
apply b apply-b.toml
status with-extra
sleep 0.7

# What is refused changes nothing.
sed 's/policy = "fixed-priority"/policy = "fair"/; s/{ priority = [01] }/{}/' apply-b.toml >root.toml
apply root root.toml
sed 's/under.rest = /under.nowhere = /' apply-b.toml >faults.toml
apply faults faults.toml
sed 's/^policy = "round-robin"/policy = "time-sharing"/; /^quantum/d' apply-c.toml >unloaded.toml
apply unloaded unloaded.toml
apply same apply-b.toml
sleep 0.2

apply c apply-c.toml
status without-extra
say so-far "$(tierce status --report --json | tr -d '\n')"
sleep 0.6
apply a apply-a.toml
# shellcheck disable=SC2086 # a list
wait $meters
for task in steady grow hogs; do
	say $task "$(cat /out/$task.meter)"
done
finish TERM
say socket "\"$(ls /run/tierce.sock 2>/dev/null)\""
