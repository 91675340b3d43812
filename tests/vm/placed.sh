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

# A container with a budget on each CPU, and two inside of it.
# ctl NAME OPERATION...: said as NAME
ctl() {
	operation=$1
	shift
	tierce ctl "$@" --json >"/out/$operation.said" 2>"/out/$operation.refused"
	say "$operation" "{\"code\":$?,\"said\":$(tr -d '\n' <"/out/$operation.said")}"
}
ctl pod create pod --policy fair --under rt --on 0:20ms/100ms --match comm=pod
ctl link link pod --under rt --cpu 1 --budget 5ms --period 50ms
at=$(in_ms 1500)
meters=''
for n in 1 2; do
	meter spin --name pod --start "$at" --time 4s >/out/pod-$n.meter &
	meters="$meters $!"
done
meter spin --name db --start "$at" --time 4s >/out/db.meter &
meters="$meters $!"
meter spin --name log --start "$at" --time 4s >/out/log.meter &
meters="$meters $!"
sleep 0.3
ctl db create db --inside pod --policy fair --on 0:8ms/400ms --on 1:4ms/400ms --match comm=db
ctl log create log --inside pod --policy fair --cpu 0 --budget 8ms --period 400ms --match comm=log
ctl root create x --inside top --policy fair --budget 1ms --period 10ms
ctl inner-too-much create x --inside pod --policy fair --cpu 1 --budget 4ms --period 50ms
tierce ctl plan >/out/enclosed.toml
# shellcheck disable=SC2086 # a list
wait $meters
for one in pod-1 pod-2 db log; do
	say $one-meter "$(cat /out/$one.meter)"
done
ctl more set log --budget 70ms
finish TERM
