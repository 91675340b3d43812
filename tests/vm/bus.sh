#!/bin/sh
# Debian's dbus-daemon, a plan in force and the manager with a rule, one CPU, one boot: a user asks over the bus, divides a scheduler and is told
# of jobs that miss their deadline, and when root, who is more important, takes the CPU. See crates/tierce-cli/tests/dbus_boots.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

printf 'messagebus:x:100:100::/:/bin/false\nalice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
mkdir -p /run/dbus /var
ln -s /run /var/run
chmod 1777 /tmp
dbus-daemon --system || exit
begin plan manager.toml || exit
: >/out/manager.err
tierce-manager --config manager-rules.toml --books /out/books.json 2>/out/manager.err &
manager=$!
until grep -q 'answers as' /out/manager.err; do sleep 0.2; done

# Jobs of hers that take longer than she will ask for.
su alice -c 'exec tierce job --name late --period 50ms --work 3ms --for 3000s' >/dev/null &
job=$! late=
finds_late() {
	late=$(grep -lx late /proc/$job/task/*/comm | cut -d/ -f5)
	[ "$late" ]
}
awaits finds_late
su alice -c "ASKS=/tmp/alice LATE=$late exec ./clients --exact bus_client" >/out/alice.log 2>&1 &
client=$!
tries=100
until [ -e /tmp/alice.ready ] || [ $tries = 0 ]; do
	sleep 0.2
	tries=$((tries - 1))
done
say requests "$(tierce request --list --json)"
# gdbus USER METHOD ARGUMENT...: what it prints, as a text of JSON
call() {
	user=$1 method=$2
	shift 2
	su "$user" -c "exec gdbus call --system --dest org.tierce.Manager1 --object-path /org/tierce/Manager1 --method org.tierce.Manager1.$method $*" 2>&1 |
		tr -d '\n' | sed 's/[\\"]/\\&/g; s/.*/"&"/'
}
part="\"[{'create': <{'name': <'more'>, 'policy': <'fair'>, 'under': <''>, 'keys': <[['weight', '3']]>}>}]\""
say tried "$(call alice Divide 3 "$part" true)"
say of-another "$(call bob Divide 3 "$part" false)"
say seen-by-another "$(call bob List)"
meter spin --name important --time 100s >/dev/null &
important=$!
sleep 0.5
say important "$(tierce request --thread "$important" --budget 9ms --period 10ms --value 9 --wait --json | tail -n 1)"
wait "$client"
say client-end $?
say client "$(cat /tmp/alice)"
kill "$important" "$job" "$manager"
wait "$manager"
finish TERM
