#!/bin/sh
# A plan in force, the manager beside it, and users who ask for CPU time, one CPU, one boot. See crates/tierce-cli/tests/manager.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# divide NAME USER ID OPERATION...: the scheduler of the request ID
divide() {
	scenario=$1 user=$2 id=$3
	shift 3
	answer "$scenario" "$user" ctl --request "$id" "$@"
}
# watch NAME: the graph, and again after half a second
watch() {
	say "$1-before" "$(tierce ctl list --json | tr -d '\n')"
	sleep 0.5
	say "$1-after" "$(tierce ctl list --json | tr -d '\n')"
}
# spin USER NAME: a thread of a user that never stops; its number is in $spun
spin() {
	su "$1" -c "exec meter spin --name $2 --time 200s" >/dev/null &
	spun=$!
}
manager() {
	tierce manager --config manager-rules.toml --books /out/books.json 2>>/out/manager.err &
	manager=$!
	for _ in 1 2 3 4 5 6 7 8 9; do
		sleep 0.2
		! tierce request --list >/dev/null 2>&1 || break
	done
}

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
echo bob:165536:65536 >/etc/subuid
manager
ask nobody alice --list
begin first manager.toml || exit
sleep 1
spin alice one
one=$spun meters=$spun
spin bob two
two=$spun meters="$meters $spun"
spin alice three
three=$spun meters="$meters $spun"
spin bob left
left=$spun meters="$meters $spun"
spin bob right
right=$spun meters="$meters $spun"
sleep 0.5
say threads "{\"one\":$one,\"two\":$two,\"three\":$three,\"left\":$left,\"right\":$right}"

# Who asks gets what fits, for threads of his own.
ask dry alice --thread "$one" --budget 3ms --period 10ms --dry-run
ask grant alice --thread "$one" --budget 3ms --period 10ms --value 1 --wait
watch granted
ask refuse bob --thread "$two" --budget 9ms --period 10ms
ask foreign bob --thread "$one" --budget 1ms --period 10ms
ask twice alice --thread "$one" --budget 1ms --period 10ms
ask bad bob --thread "$two" --budget 11ms --period 10ms
ask list-alice alice --list
ask list-bob bob --list
ask not-his bob --cancel 1
ask endless bob --thread "$two" --budget 1ms --period 10ms --label endless
ask signal-of-bob bob --rules

# The more important goes first, and the other is told before and after.
su alice -c 'exec tierce request --watch --json' >/out/alice.told &
watcher=$!
sleep 0.3
ask important bob --thread "$two" --budget 8ms --period 10ms --value 9 --wait
watch important
ask listed alice --list
ask cancelled bob --cancel 2
sleep 0.3
ask back alice --list
kill "$watcher"
say told "[$(awk 'NR > 1 { printf "," } { printf "%s", $0 }' /out/alice.told)]"

# A scheduler of her own, below which she asks nobody.
ask scheduler alice --policy reservation --budget 2ms --period 10ms
ask inside alice --thread "$three" --budget 10ms --period 100ms --under grant-3
ask too-much-inside alice --match comm=none --budget 15ms --period 100ms --under grant-3
ask inside-of-alices bob --thread "$two" --budget 100us --period 10ms --under grant-3
watch inside

# Another user divides his, with the operations by which root changes the plan.
ask whole bob --policy reservation --budget 3ms --period 10ms
divide whole-tried bob 5 create left --policy fair --budget 20ms --period 200ms --match comm=left --dry-run
divide whole-left bob 5 create left --policy fair --budget 20ms --period 200ms --match comm=left
divide whole-right bob 5 reserve "$right" --name right --budget 30ms --period 200ms
watch divided
say divided-status "$(tierce status --json | tr -d '\n')"
divide whole-list bob 5 list
su bob -c 'tierce ctl --request 5 list' >/out/whole.txt
divide whole-too-much bob 5 create more --policy fair --budget 40ms --period 200ms
divide whole-of-another alice 5 create hers --policy fair --budget 1ms --period 200ms
divide whole-seen-by-another alice 5 list
divide whole-foreign bob 5 reserve "$one" --budget 1ms --period 200ms
divide whole-outside bob 5 destroy tools
divide whole-reload bob 5 destroy left --all --reload
divide whole-less bob 5 set left --budget 10ms
divide whole-without-right bob 5 end right
divide whole-left-over bob 5 list
ask whole-revoked root --cancel 5
say revoked-graph "$(tierce ctl list --json | tr -d '\n')"
divide whole-gone bob 5 list

ask before-kill alice --list
# The manager is killed, and comes back: what was granted stays, and goes on meanwhile.
kill -9 "$manager"
wait "$manager"
watch killed
kill "$three"
manager
ask again alice --list
ask new bob --thread "$two" --budget 1ms --period 10ms
say books "$(cat /out/books.json)"

# The plan ends, and another run of it begins: who had a guarantee has it again.
finish TERM
sleep 1
ask no-plan alice --list
# Beside a manager nothing is promised to a name that any user can take.
sed 's/, uid = 0//' manager.toml >forged.toml
tierce run forged.toml --for 1s >/dev/null 2>/out/forged.refused
say forged "{\"code\":$?,\"state\":\"$(cat /sys/kernel/sched_ext/state)\"}"
begin second manager.toml || exit
sleep 1.5
ask regained alice --list
tierce apply forged.toml >/dev/null 2>/out/apply-forged.refused
say apply-forged $?
watch regained
# A service of the system's asks for itself.
mkdir -p /sys/fs/cgroup/system.slice/web.service
(
	echo 0 >/sys/fs/cgroup/system.slice/web.service/cgroup.procs
	ask unit bob --match comm=web --budget 100us --period 10ms --owner unit:web.service
)
ask not-the-unit bob --match comm=web --budget 100us --period 10ms --owner unit:web.service
# So do containers, by the name that their engine gives them, or the configuration.
shop=/sys/fs/cgroup/machine.slice/machine-my\\x2dshop.scope
inner=$shop/system.slice/web.service
mkdir -p "$inner" /sys/fs/cgroup/vs1/shop/a /sys/fs/cgroup/user.slice/machine-my-shop.scope
(
	echo 0 >"$inner/cgroup.procs"
	ask container bob --match comm=web2 --budget 100us --period 10ms --owner container:my-shop
	ask container-list bob --list
	ask not-its-unit bob --match comm=web3 --budget 100us --period 10ms --owner unit:web.service
	echo 0 >/sys/fs/cgroup/vs1/shop/a/cgroup.procs
	ask configured bob --match comm=web3 --budget 100us --period 10ms --owner container:webshop
	echo 0 >/sys/fs/cgroup/user.slice/machine-my-shop.scope/cgroup.procs
	ask not-the-container bob --match comm=web4 --budget 100us --period 10ms --owner container:my-shop
)
ask not-the-container-either bob --list
# Jobs that take longer than their owner has asked for: she is told, a rule hears of it, and `status` counts.
su alice -c 'exec tierce job --name late --period 50ms --work 3ms --for 300s' >/dev/null &
job=$! meters="$meters $!" late=
finds_late() {
	late=$(grep -lx late /proc/$job/task/*/comm | cut -d/ -f5)
	[ "$late" ]
}
awaits finds_late
su alice -c 'exec tierce request --watch --json' >/out/late.told &
watchers=$!
tierce request --watch --json >/out/late.heard &
watchers="$watchers $!"
sleep 0.3
ask late alice --thread "$late" --budget 1ms --period 10ms --deadline 5ms
late_id=$(grep -o '"id":[0-9]*' /out/late.said | head -n 1 | cut -d: -f2)
awaits grep -q deadline_missed /out/late.told
awaits grep -q 'jobs missed 5000 us' /out/late.heard
# shellcheck disable=SC2086 # a list
kill $watchers
say late-told "[$(awk 'NR > 1 { printf "," } { printf "%s", $0 }' /out/late.told)]"
say late-heard "[$(grep 'jobs missed 5000 us' /out/late.heard | head -n 1)]"
say late-status "$(tierce status --json | tr -d '\n')"
tierce status >/out/late-status.txt
# Another deadline for the same thread, which it meets; it outlives the manager.
ask late-longer alice --change "$late_id" --budget 1ms --period 10ms --deadline 10s
say late-longer-status "$(tierce status --json | tr -d '\n')"
kill -9 "$manager"
wait "$manager"
manager
sleep 0.5
ask late-again alice --list
say late-again-status "$(tierce status --json | tr -d '\n')"
ask late-none alice --change "$late_id" --budget 1ms --period 10ms
say late-none-status "$(tierce status --json | tr -d '\n')"
ask late-zero alice --change "$late_id" --budget 1ms --period 10ms --deadline 0ms
# Rules as they are configured now; those that cannot be read change nothing.
printf '\n[[rule]]\nname = "no-such-rule"\n' >>manager-rules.toml
kill -HUP "$manager"
sleep 0.5
ask before-reload bob --match comm=x --budget 100us --period 10ms --dry-run
sed -i 's/"no-such-rule"/"limit-per-user"\nparameters = { requests = 0 }/' manager-rules.toml
kill -HUP "$manager"
sleep 0.5
ask after-reload bob --match comm=x --budget 100us --period 10ms --dry-run
kill "$manager"
wait "$manager"
say manager-end $?
# shellcheck disable=SC2086 # a list
kill $meters
finish TERM
