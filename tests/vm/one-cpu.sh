#!/bin/sh
# One CPU, one boot: supply of reservations and shares, the life of a plan. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

tierce run endless.toml >/out/endless 2>&1
say refused "{\"code\":$?,\"state\":\"$(state)\"}"

# The kernel's own deadline class beside the same hogs, as a yardstick.
echo HRTICK_DL >/sys/kernel/debug/sched/features
say deadline "$(meter service --policy deadline:2ms:10ms --budget 2ms --hogs 4 --gap 4us --time 2s)"

# Three reservations, the hierarchy inside a fourth, and four hogs, all at once.
begin supply one-cpu.toml --trace /out/supply.trace || exit
at=$(in_ms 1500)
for task in short:2ms:10ms middle:3ms:20ms long:5ms:50ms; do
	task_name=${task%%:*} times=${task#*:}
	meter service --name "$task_name" --budget "${times%:*}" --period "${times#*:}" --start "$at" --time 10100ms \
		--gap 4us --segments "/out/$task_name.csv" >"/out/$task_name.meter" &
	meters="$meters $!"
done
for task in one two three quarter; do
	meter spin --name $task --start "$at" --time 10100ms >/out/$task.meter &
	meters="$meters $!"
done
meter hogs --count 4 --start "$at" --time 10100ms >/out/hogs.meter
# shellcheck disable=SC2086 # a list
wait $meters
for task in short middle long one two three quarter hogs; do
	say $task "$(cat /out/$task.meter)"
done

# A task of the plan goes to a real-time class and back. So that it does not starve this script, that is above it.
meter service --name short --budget 2ms --hogs 1 --time 1500ms --start "$(in_ms 400)" --segments /out/class.csv \
	>/out/class.meter &
meter=$!
sleep 0.8
chrt -f -p 50 $$
for pid in $(pidof meter); do
	read -r comm <"/proc/$pid/comm"
	[ "$comm" != short ] || realtime=$pid
done
from=$(now_ms)
chrt -f -p 10 "$realtime"
sleep 0.4
chrt -o -p 0 "$realtime"
to=$(now_ms)
chrt -o -p 0 $$
wait $meter
say class "{\"from_ms\":$from,\"to_ms\":$to,\"meter\":$(cat /out/class.meter)}"

# A thread against 1 to 256 (Regehr 2001, table 10.4). The users are what the plan goes by.
printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
for n in 1 4 16 64 256; do
	at=$(in_ms $((500 + n * 10)))
	su alice -c "exec meter spin --time 2s --start $at" >/out/alice &
	alice=$!
	su bob -c "exec meter hogs --count $n --time 2s --start $at" >/out/bob
	wait $alice
	say "against-$n" "[$(cat /out/alice),$(cat /out/bob)]"
done

sleep 0.2
finish TERM

# Renderers beside 0, 1 and 10 hogs (Regehr 2001, table 10.5).
begin renderers renderers.toml --policies edf --measure --epoch 0ns || exit
for renderer in hard soft none long; do
	for n in 0 1 10; do
		at=$(in_ms $((300 + n * 10)))
		meter frames --name $renderer --start "$at" --time 1s >/out/frames &
		meter=$!
		hog=hog
		[ $renderer != long ] || hog=slow
		[ $n = 0 ] || meter hogs --name $hog --count $n --start "$at" --time 1s >/out/hogs.meter
		wait $meter
		say "$renderer-$n" "$(cat /out/frames)"
	done
done
# Throttled in the kernel or behind it: who waits for a lock that such a thread has, and what it gets.
at=$(in_ms 500)
meter dirlock --role hold --start "$at" --time 3s >/out/hold.meter &
meters=$!
meter spin --name pairspin --start "$at" --time 3s >/out/pairspin.meter &
meters="$meters $!"
meter cyclic --name pairwake --interval 1ms --start "$at" --time 3s >/out/pairwake.meter &
meters="$meters $!"
meter spin --start "$at" --time 3s >/out/lower.meter &
meters="$meters $!"
meter dirlock --role wait --interval 10ms --start "$at" --time 3s >/out/wait.meter
# shellcheck disable=SC2086 # a list
wait $meters
say locks-wait "$(cat /out/wait.meter)"
say locks-pair "$(cat /out/pairspin.meter)"
say locks-hard "$(meter service --name hard --budget 10ms --period 33ms --hogs 1 --gap 4us --time 1s)"
# Another plan instead, with real jobs under EDF: one is in time, one overruns its deadline every third time.
tierce apply jobs.toml >/out/applied 2>&1
say applied "{\"code\":$?}"
meter hogs --count 1 --start "$(in_ms 200)" --time 800ms >/out/hogs.meter &
hogs=$!
tierce job --name punctual --period 20ms --work 2ms --jobs 40 --json >/out/punctual.job &
punctual=$!
tierce job --name overruns --offset 5ms --period 40ms --deadline 10ms --work 3ms,3ms,12ms --jobs 18 --json >/out/overruns.job
say overruns "$(cat /out/overruns.job)"
wait $punctual
say punctual "$(cat /out/punctual.job)"
say measured "$(tierce measure --live --json | tr -d '\n')"
say nobody "$(tierce job --name nobody --period 10ms --jobs 1 --json)"
wait $hogs
begun=$(now_ms)
kill -9 "$loader"
until [ "$(state)" = disabled ] || [ $(($(now_ms) - begun)) -gt 2000 ]; do
	sleep 0.01
done
say killed "{\"state\":\"$(state)\",\"after_ms\":$(($(now_ms) - begun))}"
