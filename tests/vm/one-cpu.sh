#!/bin/sh
# One CPU, one boot: supply of reservations and shares, the life of a plan. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

tierce run endless.toml >/out/endless 2>&1
say refused "{\"code\":$?,\"state\":\"$(state)\"}"

# The kernel's own deadline class beside the same hogs, as a yardstick.
echo HRTICK_DL >/sys/kernel/debug/sched/features
say deadline "$(meter service --policy deadline:2ms:10ms --budget 2ms --hogs 4 --time 2s)"

# Three reservations, the hierarchy inside a fourth, and four hogs, all at once.
begin supply one-cpu.toml --trace /out/supply.trace || exit
at=$(in_ms 1500)
for task in short:2ms:10ms middle:3ms:20ms long:5ms:50ms; do
	task_name=${task%%:*} times=${task#*:}
	meter service --name "$task_name" --budget "${times%:*}" --period "${times#*:}" --start "$at" --time 10s \
		--segments "/out/$task_name.csv" >"/out/$task_name.meter" &
	meters="$meters $!"
done
for task in one two three quarter; do
	meter spin --name $task --start "$at" --time 10s >/out/$task.meter &
	meters="$meters $!"
done
meter hogs --count 4 --start "$at" --time 10s >/out/hogs.meter
# shellcheck disable=SC2086 # a list
wait $meters
for task in short middle long one two three quarter hogs; do
	say $task "$(cat /out/$task.meter)"
done

# To a real-time class and back: stolen time, then a task of the plan again.
meter service --name short --budget 2ms --hogs 1 --time 1500ms --start "$(in_ms 300)" >/out/class.meter &
sleep 0.5
for pid in $(pidof meter); do
	read -r comm <"/proc/$pid/comm"
	[ "$comm" != short ] || realtime=$pid
done
chrt -f -p 10 "$realtime"
sleep 0.5
chrt -o -p 0 "$realtime"
wait $!
say class "$(cat /out/class.meter)"

# Ten thousand processes come and go beside hogs.
say storm "$(meter forkstorm --count 10000 --hogs 2)"
sleep 0.2
finish TERM

# A thread against 1 to 256 (Regehr 2001, table 10.4). The users are what the plan goes by.
printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
begin isolation isolation.toml || exit
for n in 1 4 16 64 256; do
	at=$(in_ms $((500 + n * 10)))
	su alice -c "exec meter spin --time 2s --start $at" >/out/alice &
	alice=$!
	su bob -c "exec meter hogs --count $n --time 2s --start $at" >/out/bob
	wait $alice
	say "against-$n" "[$(cat /out/alice),$(cat /out/bob)]"
done
begun=$(now_ms)
kill -9 "$loader"
until [ "$(state)" = disabled ] || [ $(($(now_ms) - begun)) -gt 2000 ]; do
	sleep 0.01
done
say killed "{\"state\":\"$(state)\",\"after_ms\":$(($(now_ms) - begun))}"
