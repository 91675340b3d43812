#!/bin/sh
# Rules that make nodes of their own, with threads of users below them, one CPU, one boot. See crates/tierce-cli/tests/manager.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# graph NAME: the graph
graph() {
	say "$1" "$(tierce ctl list --json | tr -d '\n')"
}
# watch NAME: the graph, and again after a second
watch() {
	graph "$1-before"
	sleep 1
	graph "$1-after"
}
# spin USER NAME: a thread of a user that never stops
spin() {
	su "$1" -c "exec meter spin --name $2 --time 200s" >/dev/null &
}
# manager RULE PARAMETERS: a manager with that rule
manager() {
	printf '[[rule]]\nname = "%s"\nparameters = { %s }\n' "$1" "$2" >rules.toml
	tierce manager --config rules.toml --books /out/books.json 2>>/out/manager.err &
	manager=$!
	until tierce request --list >/dev/null 2>&1; do sleep 0.2; done
	sleep 1
}
over() {
	killall meter 2>/dev/null
	kill "$manager"
	wait "$manager"
}

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
begin first manager.toml || exit

manager cage 'users = [1002], budget = "2ms", period = "20ms"'
for n in 1 2 3 4 5 6 7 8 9 10; do
	for m in 1 2 3 4 5; do spin bob "hog-$n-$m"; done
done
su bob -c 'while :; do /bin/true & wait; done' 2>/dev/null &
storm=$!
sleep 2
watch caged
ask caged-asks bob --match comm=x --budget 100us --period 10ms
kill $storm
over

manager session-scheduler 'weight = 100'
mkdir -p /run/user/1001 /run/user/1002
for n in 1 2 3 4 5; do spin alice "many-$n"; done
spin bob one
sleep 2
watch sessions
killall meter
rmdir /run/user/1001
sleep 2
graph one-session
over

manager probabilistic 'budget = "1ms", period = "20ms"'
spin alice now-and-then
spun=$!
sleep 0.5
ask overrun alice --thread "$spun" --budget 1ms --period 10ms --about probabilistic=true
sleep 0.5
watch overrun
kill "$spun"
sleep 2
graph no-overrun
over

# A plan whose match anybody can forge, and a manager that starts later.
finish TERM
sed 's/, uid = 0//' manager.toml >forged.toml
begin second forged.toml || exit
# A rule of bob's that never ends, or wants all memory, or fails, while alice asks for what has nothing to do with it.
printf '[[rule]]\nfile = "bad.rhai"\nowner = "user:1002"\n' >rules.toml
tierce manager --config rules.toml --books /out/books.json 2>>/out/manager.err &
manager=$!
until tierce request --list >/dev/null 2>&1; do sleep 0.2; done
chmod 1777 /tmp
peak() {
	awk '/^VmHWM/ { printf "%d", $2 }' "/proc/$manager/status"
}
su alice -c "POLITE=/tmp/alone exec ./clients --exact polite_client" >/out/alone.log 2>&1
say bad-alone "$(cat /tmp/alone)"
before=$(peak)
su bob -c "LABELS=/tmp/labels exec ./clients --exact client_with_labels" >/out/labels.log 2>&1 &
labels=$!
su alice -c "POLITE=/tmp/beside exec ./clients --exact polite_client" >/out/beside.log 2>&1
say bad-beside "$(cat /tmp/beside)"
wait $labels
say bad-labels "$(cat /tmp/labels)"
say bad-memory "[$before,$(peak)]"

# A share of a scheduler of alice's own: what it promises is counted, and she is told when it is not kept, because root's program took the CPU.
ask scheduler alice --policy fair --budget 6ms --period 10ms
spin alice shared
shared=$!
spin alice shared
other=$!
sleep 0.5
ask share alice --thread "$shared" --guarantee "'PSBE 1/4 20ms'" \
	--under "$(sed -n 's/.*"name":"\(grant-[0-9]*\)".*/\1/p' /out/scheduler.said)"
ask beside alice --thread "$other" --guarantee "'PS 1/100'" \
	--under "$(sed -n 's/.*"name":"\(grant-[0-9]*\)".*/\1/p' /out/scheduler.said)"
su alice -c 'exec tierce request --watch --json' >/out/share.told &
watcher=$!
sleep 2
say share-kept "$(tierce status --json | tr -d '\n')"
chrt -f 10 meter spin --name taker --time 2s >/dev/null
sleep 1
say share-taken "$(tierce status --json | tr -d '\n')"
kill $watcher
over
finish TERM
