#!/bin/sh
# Budgets that find their CPU, two CPUs, one boot. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

begin placed placed.toml || exit
at=$(in_ms 800)
meters=''
for n in 1 2 3 4 5 6; do
	meter spin --name fifth --start "$at" --time 4s >/out/fifth-$n.meter &
	meters="$meters $!"
done
meter spin --name tenth --start "$at" --time 4s >/out/tenth.meter &
tenth=$!
sleep 0.5
# ask NAME PID BUDGET: a reservation, wherever there is room
ask() {
	tierce ctl reserve "$2" --under rt --budget "$3" --period 10ms --json >"/out/$1.said" 2>"/out/$1.refused"
	say "$1" "{\"code\":$?,\"said\":$(tr -d '\n' <"/out/$1.said")}"
}
ask tenth-reserved $tenth 1ms
ask too-much $$ 4ms # there would be room if a thread moved; threads of sets do not
sleep 0.6
say status "$(tierce status --json | tr -d '\n')"
# shellcheck disable=SC2086 # a list
wait $meters $tenth
for n in 1 2 3 4 5 6; do
	say fifth-$n "$(cat /out/fifth-$n.meter)"
done
say tenth "$(cat /out/tenth.meter)"
finish TERM
